//! LogServices: who is sent the access log, of HTTP requests or of TCP connections.
//!
//! In: all LogServices of the instance. Out: the servers that every proxy sends its log to, besides the operator's own log, and what is
//! told about each object. Those of Sesame's namespace are in effect, or else those of the namespace of the oldest; one of another
//! namespace is not, since it would be sent headers of everybody's requests. One that cannot be used is sent nothing, and the others
//! are.

use crate::{EmissaryView, Problem, Problems, Settings, mapping::upstream, precedence, upstream_service::Reading};
use kinds::{
    Checked,
    emissary::{
        LogService,
        auth_service::ProtocolVersion,
        log_service::{DriverConfig, LogDriver, LogHeader, LogServiceSpec},
    },
    kind,
};
use model::{
    Code, HeaderName, ObjectRef, Translation, Verdict,
    cluster::ClusterOverrides,
    listener::{AccessLogServer, LoggedHeaders},
};
use std::{collections::BTreeMap, time::Duration};

/// The name of the log, as in Emissary.
const LOG_NAME: &str = "logservice";
/// Seconds after which entries are sent where nothing is said, and the most.
const FLUSH_SECONDS: (i64, i64) = (1, 3600);
/// Bytes after which entries are sent where nothing is said, and the most: each thread of a proxy holds so many.
const FLUSH_BYTES: (i64, i64) = (16 * 1024, 1024 * 1024);
/// The most headers that are logged.
const MOST_HEADERS: usize = 100;
/// The most servers: each request is sent to all of them.
const MOST_SERVERS: usize = 8;

/// The LogServices of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogServices {
    /// Who gets the log of HTTP requests, in the order of age.
    pub http: Vec<AccessLogServer>,
    /// Who gets the log of TCP connections.
    pub tcp: Vec<AccessLogServer>,
    /// The objects in effect.
    pub objects: Vec<ObjectRef>,
    /// What is told about each object.
    pub verdicts: BTreeMap<ObjectRef, Vec<Verdict>>,
    /// Whether one depends on a Secret that has not been read yet.
    pub is_pending: bool,
}

impl LogServices {
    /// Those in effect, and what is told about all of them; nothing where there is none.
    pub fn of<'a>(
        objects: impl Iterator<Item = &'a LogService>,
        view: &mut impl EmissaryView,
        settings: &Settings,
    ) -> Option<Self> {
        let mut objects: Vec<&LogService> = objects.collect();
        let order = |object: &LogService| (*object.meta.namespace != *settings.namespace, precedence(&object.meta, 0));
        objects.sort_by_cached_key(|object| order(object));
        let first = *objects.first()?;
        let mut all = Self::default();
        for object in objects {
            let subject = subject(object);
            let mut problems = Problems::new(&subject);
            let is_near = settings.cross_namespace || object.meta.namespace == first.meta.namespace;
            let rejection = match is_near {
                false => Some(format!("LogServices of namespace {} are in effect", first.meta.namespace)),
                true if all.objects.len() >= MOST_SERVERS => Some(format!("at most {MOST_SERVERS} are in effect")),
                true => None,
            };
            if let Some(why) = rejection {
                problems.add(Problem { code: Code::EmissaryOlderObjectInEffect, field: "".into(), why: why.into() });
            } else {
                let (namespace, code) = (&*object.meta.namespace, Code::LogServiceInvalid);
                let mut reading =
                    Reading { namespace, code, view, settings, problems: &mut problems, is_pending: false };
                let found = read(&object.spec, &mut reading);
                all.is_pending |= reading.is_pending;
                match found.filter(|_| !problems.is_refused()) {
                    Some((Driver::Http, server)) => all.http.push(server),
                    Some((Driver::Tcp, server)) => all.tcp.push(server),
                    None => {}
                }
                all.objects.push(subject.clone());
            }
            let verdicts = problems.into_verdicts();
            all.verdicts.insert(subject, verdicts);
        }
        Some(all)
    }
}

/// Whose log it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Driver {
    Http,
    Tcp,
}

fn read(spec: &LogServiceSpec, reading: &mut Reading<'_, '_, impl EmissaryView>) -> Option<(Driver, AccessLogServer)> {
    let called = reading.service("service", &spec.service, None);
    let driver = driver(spec, reading);
    let seconds = number(reading, "flush_interval_time", &spec.flush_interval_time, 1, FLUSH_SECONDS);
    let bytes = number(reading, "flush_interval_byte_size", &spec.flush_interval_byte_size, 0, FLUSH_BYTES);
    match reading.problems.optional("protocol_version", &spec.protocol_version) {
        None | Some(ProtocolVersion::V3) => {}
        Some(version) => {
            reading.refuse("protocol_version", format!("must be v3, not `{}`", version.as_str().escape_debug()));
        }
    }
    if reading.problems.optional("grpc", &spec.grpc) == Some(&false) {
        reading.problems.no_effect("grpc", "the log is sent over gRPC");
    }
    let config = reading.problems.optional("driver_config", &spec.driver_config);
    let headers = config.map(|config| headers(config, reading)).unwrap_or_default();
    let stats_name = reading.problems.optional("stats_name", &spec.stats_name).filter(|name| !name.is_empty());
    let overrides =
        ClusterOverrides { stats_name: stats_name.map(|name| upstream::in_stats(name)), ..ClusterOverrides::default() };
    let driver = driver?;
    if driver == Driver::Tcp && headers != LoggedHeaders::default() {
        reading.problems.no_effect("driver_config.additional_log_headers", "a TCP connection has no headers");
    }
    let extension = called?.extension(true, overrides, reading.view);
    let server = AccessLogServer {
        log_name: LOG_NAME.into(),
        extension,
        flush_after: Duration::from_secs(seconds?),
        flush_bytes: bytes?,
        headers,
    };
    Some((driver, server))
}

fn driver(spec: &LogServiceSpec, reading: &mut Reading<'_, '_, impl EmissaryView>) -> Option<Driver> {
    match reading.problems.read("driver", &spec.driver)? {
        Some(LogDriver::Http) => Some(Driver::Http),
        Some(LogDriver::Tcp) => Some(Driver::Tcp),
        Some(LogDriver::Unknown(word)) => {
            reading.refuse("driver", format!("must be http or tcp, not `{}`", word.escape_debug()));
            None
        }
        None => {
            reading.refuse("driver", "driver is missing");
            None
        }
    }
}

/// A number from the least to the most of a range, or what is meant where nothing is said.
fn number<T: TryFrom<i64>>(
    reading: &mut Reading<'_, '_, impl EmissaryView>,
    field: &str,
    value: &Checked<Option<i64>>,
    least: i64,
    (default, most): (i64, i64),
) -> Option<T> {
    let value = reading.problems.read(field, value)?.unwrap_or(default);
    let found = Some(value).filter(|value| (least..=most).contains(value)).and_then(|value| T::try_from(value).ok());
    if found.is_none() {
        reading.refuse(field, format!("must be from {least} to {most}, not {value}"));
    }
    found
}

/// The headers that are logged; one that is not valid is left out.
fn headers(config: &DriverConfig, reading: &mut Reading<'_, '_, impl EmissaryView>) -> LoggedHeaders {
    let mut logged = LoggedHeaders::default();
    for (index, written) in config.additional_log_headers.iter().enumerate() {
        let found = match written.get() {
            Ok(_) if index >= MOST_HEADERS => Err(format!("at most {MOST_HEADERS} headers are logged")),
            Ok(header) => {
                let name = header.header_name.as_deref().unwrap_or_default();
                HeaderName::parse(name).map(|name| (name, header)).map_err(|error| error.to_string())
            }
            Err(fault) => Err(fault.why.to_string()),
        };
        match found {
            Ok((name, LogHeader { during_request, during_response, during_trailer, .. })) => {
                let lists = [
                    (during_request, &mut logged.request),
                    (during_response, &mut logged.response),
                    (during_trailer, &mut logged.trailers),
                ];
                for (is_wanted, list) in lists {
                    if is_wanted.unwrap_or(true) && !list.contains(&name) {
                        list.push(name.clone());
                    }
                }
            }
            Err(why) => {
                let field = format!("driver_config.additional_log_headers[{index}]");
                reading.problems.add(Problem::new(Code::LogServiceInvalid, &field, why));
            }
        }
    }
    logged
}

/// What is told about a LogService: it asks for nothing by itself.
pub fn translate(subject: ObjectRef, all: &LogServices) -> Translation {
    let verdicts = all.verdicts.get(&subject).cloned().unwrap_or_default();
    Translation { verdicts, ..Translation::empty(subject) }
}

fn subject(object: &LogService) -> ObjectRef {
    ObjectRef::new(kind::LOG_SERVICE, object.meta.namespace.clone(), object.meta.name.clone())
}
