//! AuthServices: who is asked about the requests of all Mappings that do not bypass it.
//!
//! In: all AuthServices of the instance. Out: one server for the fleet, or that there is none that can be used, and what is told about
//! each object. The settings of one are in effect: of Sesame's namespace before others, then the oldest. Others that say the same and
//! name another service are asked in turn with it, as Emissary does; one of another namespace is not, since its service would see the
//! credentials of everybody's requests. One that cannot be used, and is in effect, closes what it is to protect, and so do those that
//! may not take the place of the operator's server, where that one authorizes no Mapping.

use crate::{
    EmissaryView, Problem, Problems, Settings,
    mapping::upstream,
    precedence,
    upstream_service::{Reading, UpstreamService},
};
use kinds::{
    Checked,
    emissary::{
        AuthService,
        auth_service::{AuthProtocol as Word, AuthServiceSpec, ProtocolVersion},
    },
    kind,
};
use model::{
    Code, HeaderName, MutableHeader, ObjectRef, Translation, Verdict,
    cluster::{Backend, CircuitBreakers, ClusterOverrides},
    header::HeaderFormat,
    listener::AuthorizationService,
    route::{
        AuthServer, Path,
        authorization::{AuthBody, AuthProtocol, HeaderNamePattern},
        policy::is_status,
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// How long an answer may take where nothing is said, in milliseconds.
const TIMEOUT: u64 = 5000;
/// The most of a body that a server is sent: a proxy holds it in memory for each request.
const MOST_BODY: i64 = 1024 * 1024;
/// What is sent of a body by `allow_request_body`.
const BODY: u32 = 4096;
/// The most names of headers.
const MOST_HEADERS: usize = 100;
/// The most services that are asked in turn: all of them are in the name of a cluster.
const MOST_SERVICES: usize = 16;
/// Headers of a request that a server over HTTP is sent, besides those that are listed.
const REQUEST_HEADERS: [&str; 8] = [
    "authorization",
    "cookie",
    "from",
    "proxy-authorization",
    "user-agent",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
];
/// Headers of its answer that are passed on, besides those that are listed.
const ANSWER_HEADERS: [&str; 5] = ["authorization", "location", "proxy-authenticate", "set-cookie", "www-authenticate"];

/// The AuthServices of an instance as the one that proxies ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthServices {
    /// The object whose settings are in effect.
    pub object: ObjectRef,
    /// What proxies ask; nothing where it cannot be used.
    pub service: Option<AuthorizationService>,
    /// What is told about each object.
    pub verdicts: BTreeMap<ObjectRef, Vec<Verdict>>,
    /// Whether it depends on a Secret that has not been read yet.
    pub is_pending: bool,
}

/// What a Mapping needs to know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthServiceInEffect {
    /// The object.
    pub object: ObjectRef,
    /// Whether it can be asked.
    pub is_usable: bool,
    /// Whether it is asked over HTTP.
    pub is_over_http: bool,
}

impl AuthServices {
    /// An object that cannot be asked and closes what it is to protect.
    pub fn closed(object: ObjectRef) -> Self {
        Self { object, service: None, verdicts: BTreeMap::new(), is_pending: false }
    }

    /// Those of which none may take the place of the operator's server, where that one is asked about no Mapping: they close what
    /// they are to protect. Nothing where there is none.
    pub fn not_operators<'a>(objects: impl Iterator<Item = &'a AuthService>) -> Option<Self> {
        let mut objects: Vec<&AuthService> = objects.collect();
        objects.sort_by_cached_key(|object| precedence(&object.meta, 0));
        let why = "globalExtAuth is configured with authPolicy.disabled: only an AuthService in the namespace of Sesame \
                   authorizes Mappings; those without bypass_auth answer 503";
        let all = Self::closed(subject(objects.first()?));
        let verdicts = objects.into_iter().map(subject).map(|object| {
            let verdict = Verdict::new(Code::AuthServiceNamespace, object.at(""), why);
            (object, vec![verdict])
        });
        Some(Self { verdicts: verdicts.collect(), ..all })
    }

    /// What a Mapping needs to know.
    pub fn in_effect(&self) -> AuthServiceInEffect {
        let is_http = |service: &AuthorizationService| service.server.protocol != AuthProtocol::Grpc;
        AuthServiceInEffect {
            object: self.object.clone(),
            is_usable: self.service.is_some(),
            is_over_http: self.service.as_ref().is_some_and(is_http),
        }
    }

    /// All of them as one; nothing where there is none.
    pub fn of<'a>(
        objects: impl Iterator<Item = &'a AuthService>,
        view: &mut impl EmissaryView,
        settings: &Settings,
    ) -> Option<Self> {
        let mut objects: Vec<&AuthService> = objects.collect();
        let order = |object: &AuthService| (*object.meta.namespace != *settings.namespace, precedence(&object.meta, 0));
        objects.sort_by_cached_key(|object| order(object));
        let (first, others) = objects.split_first()?;
        let object = subject(first);
        let mut all = Self::closed(object.clone());
        let mut problems = Problems::new(&object);
        let asked = all.read(first, view, settings, &mut problems);
        all.verdicts.insert(object.clone(), problems.into_verdicts());
        let mut services: BTreeSet<_> = asked.iter().filter_map(|asked| asked.called.service()).collect();
        for other in others {
            let subject = subject(other);
            let mut problems = Problems::new(&subject);
            let is_near = settings.cross_namespace || other.meta.namespace == first.meta.namespace;
            if !is_near {
                let why = format!("{object} is in effect; an AuthService of another namespace is not asked");
                problems.add(Problem { code: Code::EmissaryOlderObjectInEffect, field: "".into(), why: why.into() });
            } else if let (Some(found), Some(asked)) = (all.read(other, view, settings, &mut problems), &asked) {
                let field = "auth_service";
                let rejection = match (found.called.service(), asked.called.service()) {
                    _ if !found.agrees(asked) => Some(format!(
                        "auth canary {} can only change service! {object} receives all checks",
                        other.meta.name
                    )),
                    (Some(_), Some(_)) if services.len() >= MOST_SERVICES => {
                        Some(format!("checks are load balanced over at most {MOST_SERVICES} services"))
                    }
                    (Some(service), Some(_)) => {
                        services.insert(service);
                        None
                    }
                    _ => Some(format!("only Services with endpoints are load balanced; {object} receives all checks")),
                };
                rejection.into_iter().for_each(|why| problems.add(Problem::new(Code::AuthServiceMismatch, field, why)));
            }
            let verdicts = problems.into_verdicts();
            all.verdicts.insert(subject, verdicts);
        }
        all.service = asked.map(|mut asked| {
            if services.len() > 1 {
                asked.called.backend = Backend::Services(services.into_iter().collect());
            }
            asked.service(view)
        });
        Some(all)
    }

    fn read(
        &mut self,
        object: &AuthService,
        view: &mut impl EmissaryView,
        settings: &Settings,
        problems: &mut Problems<'_>,
    ) -> Option<AuthServiceSettings> {
        let (namespace, code) = (&*object.meta.namespace, Code::AuthServiceInvalid);
        let mut reading = Reading { namespace, code, view, settings, problems, is_pending: false };
        let asked = asked(&object.spec, &mut reading);
        let is_refused = reading.problems.is_refused();
        self.is_pending |= reading.is_pending;
        asked.filter(|_| !is_refused)
    }
}

impl UpstreamService {
    /// The Service port, if it is one with endpoints.
    fn service(&self) -> Option<model::EndpointsId> {
        match &self.backend {
            Backend::Service(id) => Some(id.clone()),
            Backend::Services(_) | Backend::Extension(_) | Backend::Outside(_) => None,
        }
    }
}

/// The service that one object names, and how it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AuthServiceSettings {
    called: UpstreamService,
    protocol: AuthProtocol,
    service: AuthorizationService,
    has_linkerd_headers: bool,
    breakers: (CircuitBreakers, CircuitBreakers),
    stats_name: Option<Arc<str>>,
}

impl AuthServiceSettings {
    /// Whether two say the same but for the service.
    fn agrees(&self, other: &Self) -> bool {
        let is_same_tls = (self.called.is_tls, &self.called.context) == (other.called.is_tls, &other.called.context);
        is_same_tls && Self { called: other.called.clone(), ..self.clone() } == *other
    }

    fn service(self, view: &mut impl EmissaryView) -> AuthorizationService {
        let (breakers, high_breakers) = self.breakers;
        let overrides =
            ClusterOverrides { breakers, high_breakers, stats_name: self.stats_name, ..ClusterOverrides::default() };
        let is_grpc = self.protocol == AuthProtocol::Grpc;
        let mut service = self.service;
        service.server.extension = Some(self.called.extension(is_grpc, overrides, view));
        if self.has_linkerd_headers {
            let name = MutableHeader::parse("l5d-dst-override");
            let value = HeaderFormat::read(&self.called.linkerd, &[]);
            if let (Ok(name), Ok(value)) = (name, value) {
                service.added_headers.retain(|(own, _)| *own != name);
                service.added_headers.push((name, value.format));
            }
        }
        service
    }
}

fn asked(spec: &AuthServiceSpec, reading: &mut Reading<'_, '_, impl EmissaryView>) -> Option<AuthServiceSettings> {
    let called = reading.service("auth_service", &spec.auth_service, Some(&spec.tls));
    let is_grpc = protocol(spec, reading);
    let timeout = reading.milliseconds("timeout_ms", &spec.timeout_ms, TIMEOUT);
    let path_prefix = path_prefix(spec, reading);
    let sent = names(reading, "allowed_request_headers", &spec.allowed_request_headers, &REQUEST_HEADERS);
    let passed = names(reading, "allowed_authorization_headers", &spec.allowed_authorization_headers, &ANSWER_HEADERS);
    let added_headers = added_headers(spec, reading);
    let body = body(spec, reading);
    let status_on_error = status_on_error(spec, reading);
    let fail_open =
        reading.problems.optional("failure_mode_allow", &spec.failure_mode_allow).copied().unwrap_or_default();
    let of_module = reading.view.mapping_defaults().linkerd;
    let has_linkerd_headers = reading.problems.optional("add_linkerd_headers", &spec.add_linkerd_headers).copied();
    let has_linkerd_headers = has_linkerd_headers.unwrap_or(of_module);
    let breakers = upstream::breakers(reading.problems, reading.code, &spec.circuit_breakers).unwrap_or_default();
    let stats_name = reading.problems.optional("stats_name", &spec.stats_name).filter(|name| !name.is_empty());
    let stats_name = stats_name.map(|name| upstream::in_stats(name));
    if is_grpc == Some(true) {
        for (field, is_set) in [
            ("path_prefix", path_prefix.as_ref().is_some_and(Option::is_some)),
            ("allowed_request_headers", spec.allowed_request_headers.ok().is_some_and(Option::is_some)),
            ("allowed_authorization_headers", spec.allowed_authorization_headers.ok().is_some_and(Option::is_some)),
        ] {
            if is_set {
                reading.problems.no_effect(field, "a gRPC service receives all headers and returns the changes");
            }
        }
    }
    let (request_headers, protocol, client_headers) = match is_grpc? {
        true => (None, AuthProtocol::Grpc, Vec::new()),
        false => {
            let passed = passed?;
            let upstream_headers = upstream_headers(&passed, reading);
            (Some(sent?), AuthProtocol::Http { path_prefix: path_prefix?, upstream_headers }, passed)
        }
    };
    let server = AuthServer { extension: None, protocol: protocol.clone(), timeout: timeout?, fail_open, body: body? };
    let status_on_error = status_on_error?;
    let service = AuthorizationService { server, request_headers, added_headers, client_headers, status_on_error };
    Some(AuthServiceSettings { called: called?, protocol, service, has_linkerd_headers, breakers, stats_name })
}

/// Whether it is asked over gRPC.
fn protocol(spec: &AuthServiceSpec, reading: &mut Reading<'_, '_, impl EmissaryView>) -> Option<bool> {
    let is_grpc = match reading.problems.read("proto", &spec.proto)? {
        None | Some(Word::Http) => false,
        Some(Word::Grpc) => true,
        Some(Word::Unknown(word)) => {
            reading.refuse("proto", format!("must be http or grpc, not `{}`", word.escape_debug()));
            return None;
        }
    };
    match reading.problems.read("protocol_version", &spec.protocol_version)? {
        None | Some(ProtocolVersion::V3) => Some(is_grpc),
        Some(_) if !is_grpc => {
            reading.problems.no_effect("protocol_version", "protocol_version applies to gRPC only");
            Some(is_grpc)
        }
        Some(version) => {
            reading.refuse("protocol_version", format!("must be v3, not `{}`", version.as_str().escape_debug()));
            None
        }
    }
}

/// What stands before the path; nothing said, or nothing where it is no path.
#[allow(clippy::option_option, reason = "nothing where the field cannot be read, or nothing said")]
fn path_prefix(spec: &AuthServiceSpec, reading: &mut Reading<'_, '_, impl EmissaryView>) -> Option<Option<Path>> {
    let text = reading.problems.read("path_prefix", &spec.path_prefix)?.as_deref().filter(|text| !text.is_empty());
    match text.map(Path::parse).transpose() {
        Ok(path) => Some(path),
        Err(error) => {
            reading.refuse("path_prefix", error.to_string());
            None
        }
    }
}

/// Names of headers, those that are always among them included; sorted, each once.
fn names(
    reading: &mut Reading<'_, '_, impl EmissaryView>,
    field: &str,
    written: &Checked<Option<Box<[Box<str>]>>>,
    always: &[&str],
) -> Option<Vec<HeaderName>> {
    let written = reading.problems.read(field, written)?.as_deref().unwrap_or_default();
    if written.len() > MOST_HEADERS {
        reading.refuse(field, format!("{} names are more than {MOST_HEADERS}", written.len()));
        return None;
    }
    let all = always.iter().copied().chain(written.iter().map(|name| &**name));
    match all.map(HeaderName::parse).collect::<Result<BTreeSet<_>, _>>() {
        Ok(names) => Some(names.into_iter().collect()),
        Err(error) => {
            reading.refuse(field, error.to_string());
            None
        }
    }
}

/// The headers of an answer that services are sent. Others of them reach clients alone.
fn upstream_headers(passed: &[HeaderName], reading: &mut Reading<'_, '_, impl EmissaryView>) -> Vec<HeaderNamePattern> {
    let mut sent = Vec::new();
    for name in passed {
        match MutableHeader::parse(name.as_str()) {
            Ok(_) => sent.push(HeaderNamePattern::Exact(name.clone())),
            Err(_) if ANSWER_HEADERS.contains(&name.as_str()) => {}
            Err(error) => reading.problems.no_effect("allowed_authorization_headers", &error.to_string()),
        }
    }
    sent
}

/// What the service is sent besides.
fn added_headers(
    spec: &AuthServiceSpec,
    reading: &mut Reading<'_, '_, impl EmissaryView>,
) -> Vec<(MutableHeader, HeaderFormat)> {
    let mut added = Vec::new();
    let written = reading.problems.read("add_auth_headers", &spec.add_auth_headers);
    if written.is_some_and(|written| written.len() > MOST_HEADERS) {
        reading.refuse("add_auth_headers", format!("more than {MOST_HEADERS} headers"));
    }
    for (name, value) in written.into_iter().flatten().take(MOST_HEADERS) {
        let field = format!("add_auth_headers.{name}");
        let name = MutableHeader::parse(name).map_err(|error| error.to_string());
        match name.and_then(|name| Ok((name, HeaderFormat::read(value, &[]).map_err(|error| error.to_string())?))) {
            Ok((name, value)) => added.push((name, value.format)),
            Err(why) => reading.refuse(&field, why),
        }
    }
    added.sort();
    added
}

/// How much of the body the service is sent.
#[allow(clippy::option_option, reason = "nothing where the field cannot be read, or nothing said")]
fn body(spec: &AuthServiceSpec, reading: &mut Reading<'_, '_, impl EmissaryView>) -> Option<Option<AuthBody>> {
    let is_allowed = reading.problems.optional("allow_request_body", &spec.allow_request_body).copied();
    let is_allowed = is_allowed.unwrap_or_default();
    let Some(written) = reading.problems.read("include_body", &spec.include_body)? else {
        return Some(is_allowed.then_some(AuthBody { most: BODY, partial: true, as_bytes: false }));
    };
    if is_allowed {
        let why = "Cannot specify both include_body and allow_request_body. Using include_body and ignoring allow_request_body.";
        reading.problems.no_effect("allow_request_body", why);
    }
    let most = written.max_bytes.unwrap_or_default();
    let Some(fits) = u32::try_from(most).ok().filter(|_| (1..=MOST_BODY).contains(&most)) else {
        reading.refuse("include_body.max_bytes", format!("must be from 1 to {MOST_BODY}, not {most}"));
        return None;
    };
    Some(Some(AuthBody { most: fits, partial: written.allow_partial.unwrap_or_default(), as_bytes: false }))
}

/// The status where the service cannot be asked.
fn status_on_error(spec: &AuthServiceSpec, reading: &mut Reading<'_, '_, impl EmissaryView>) -> Option<u16> {
    let written = reading.problems.read("status_on_error", &spec.status_on_error)?;
    let code = written.as_ref().and_then(|written| written.code).unwrap_or(403);
    let known = u16::try_from(code).ok().filter(|code| is_status(*code));
    if known.is_none() {
        reading.refuse("status_on_error.code", format!("must be a registered HTTP error status code, not {code}"));
    }
    known
}

/// What is told about an AuthService: it asks for nothing by itself.
pub fn translate(subject: ObjectRef, all: &AuthServices) -> Translation {
    match all.verdicts.get(&subject).cloned() {
        Some(verdicts) => Translation { verdicts, ..Translation::empty(subject) },
        None => passed_over(subject),
    }
}

/// What is told about an AuthService in whose place the operator's server authorizes Mappings.
pub fn passed_over(subject: ObjectRef) -> Translation {
    let why =
        "the operator has configured globalExtAuth: only an AuthService in the namespace of Sesame takes its place";
    let verdicts = vec![Verdict::new(Code::EmissaryOlderObjectInEffect, subject.at(""), why)];
    Translation { verdicts, ..Translation::empty(subject) }
}

fn subject(object: &AuthService) -> ObjectRef {
    ObjectRef::new(kind::AUTH_SERVICE, object.meta.namespace.clone(), object.meta.name.clone())
}
