//! The configuration: Contour's keys in a file (`-c`), or its fields in the `spec` of a ContourConfiguration.
//!
//! In: the text of the file, or the object. Out: a [`Config`], or every problem with its line or field. All that is known about a
//! setting stands in one [`row`] of [`SECTIONS`]: its key, its field, its default, how it is taken, or that it has no
//! effect; the page in `docs` is written from the same rows. A key that is unknown, or that would have no effect, is an error: a
//! setting that is ignored in silence is found out at the worst time.

mod authorization;
mod headers;
mod program;
mod proxies;
mod rate_limit;
pub mod row;
pub mod status;
#[cfg(test)]
pub(super) mod tests;
mod tls;
mod tracing;
mod value;

use self::authorization::Authorization;
use self::rate_limit::RateLimit;
use self::row::{Effect, Form, Row};
use self::tracing::Tracing;
use self::value::Wrong;
use ::status::Addresses;
use kinds::{Node, Value, kind, suggest};
use model::listener::{AccessLogFormat, HttpSettings};
use model::tls::TlsVersions;
use model::{Code, ObjectRef, Timeout};
use pipeline::settings::{Bind, MetricsTls};
use source::yaml::{self, Limits};
use source::{Problem, SourceLocation};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Every key there is, in the order of the page.
pub const SECTIONS: &[(&str, &[Row])] = &[
    ("General", program::PROGRAM),
    ("Objects", program::OBJECTS),
    ("Server", program::SERVER),
    ("Access logs", proxies::ACCESS_LOG),
    ("TLS", proxies::TLS),
    ("Timeouts", proxies::TIMEOUTS),
    ("Listeners", proxies::LISTENERS),
    ("Clusters", proxies::CLUSTERS),
    ("Headers", headers::HEADERS),
    ("Metrics and probes", program::METRICS),
    ("Rate limit service", rate_limit::RATE_LIMIT),
    ("External authorization", authorization::AUTHORIZATION),
    ("Tracing", tracing::TRACING),
];

/// Sections that are known by another name as well.
const ALIASES: [(&str, &str); 1] = [("metrics.sesame", "metrics.contour")];

/// Keys that Contour once had, and what there is instead.
const FORMER: [(&str, &str); 2] =
    [("leaderelection", "use the flags --leader-election-…"), ("request-timeout", "use timeouts.request-timeout")];

/// What the file says, over what holds if it says nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What proxies are told. Flags say the rest of it.
    pub pipeline: pipeline::Settings,
    /// The namespace and the name of the Secret for clients that name no host: both or neither.
    pub fallback: (Option<String>, Option<String>),
    /// The namespace and name of the Secret with the certificate for backends.
    pub client_certificate: (Option<String>, Option<String>),
    /// The namespace and the name of the only Gateway that is served: both or neither.
    pub gateway: (Option<String>, Option<String>),
    /// What is said about headers holds for Ingresses too.
    pub headers_on_ingresses: bool,
    /// Requests are written down in JSON.
    pub json_log: bool,
    /// The line that is written if not in JSON, where it is not Envoy's own.
    pub log_line: Option<Arc<str>>,
    /// The fields of JSON; none named means the usual ones.
    pub json_fields: Vec<Arc<str>>,
    /// Log everything down to debug.
    pub debug: bool,
    /// Use the service account of the pod.
    pub in_cluster: bool,
    /// Path of the kubeconfig.
    pub kubeconfig: Option<PathBuf>,
    /// Maximum requests per second to the API server.
    pub queries: Option<f64>,
    /// Maximum burst of requests to the API server.
    pub burst: Option<u32>,
    /// The addresses in the status of Ingresses.
    pub addresses: Option<Addresses>,
    /// The namespace of the proxies' Service.
    pub envoy_service_namespace: Option<String>,
    /// Its name.
    pub envoy_service_name: String,
    /// The classes of Ingresses and HTTPProxies that are served, where no flag says so.
    pub class_names: Vec<Box<str>>,
    /// The namespaces of root HTTPProxies, where no flag says so; all if there are none.
    pub root_namespaces: Vec<Box<str>>,
    /// Where proxies connect to.
    pub xds: Bind,
    /// How that is encrypted.
    pub xds_tls: XdsTls,
    /// Where health is shown.
    pub health: Bind,
    /// Where debug pages are shown.
    pub debug_pages: Bind,
    /// Where metrics are shown.
    pub metrics: Bind,
    /// With which files over TLS.
    pub metrics_tls: TlsPaths,
    /// The address and the port of Envoy's metrics, if apart from readiness.
    pub envoy_metrics: (Option<IpAddr>, Option<u16>),
    /// With which files over TLS, in Envoy's container.
    pub envoy_metrics_tls: TlsPaths,
    /// The address and the port of readiness that obeys the overload manager.
    pub overload_health: (Option<IpAddr>, Option<u16>),
    /// What a running process does not change, as it was written: by key.
    pub at_start: BTreeMap<&'static str, String>,
    /// The rate limit service.
    pub rate_limit: RateLimit,
    /// The authorization server for all routes.
    pub authorization: Authorization,
    /// Tracing.
    pub tracing: Tracing,
    /// What is to be said about the file, though it can be used.
    pub warnings: Vec<(Code, String)>,
}

/// Files for TLS; a certificate and a key, or neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsPaths {
    /// The certificate.
    pub certificate: Option<PathBuf>,
    /// Its private key.
    pub key: Option<PathBuf>,
    /// The CA of clients.
    pub ca: Option<PathBuf>,
}

/// How the connections of proxies are encrypted, where no flag says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XdsTls {
    /// The CA of proxies.
    pub ca: Option<PathBuf>,
    /// The certificate of the xDS server.
    pub certificate: Option<PathBuf>,
    /// Its private key.
    pub key: Option<PathBuf>,
    /// Not at all.
    pub insecure: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            pipeline: pipeline::Settings::default(),
            fallback: (None, None),
            client_certificate: (None, None),
            gateway: (None, None),
            headers_on_ingresses: false,
            json_log: false,
            log_line: None,
            json_fields: Vec::new(),
            debug: false,
            in_cluster: false,
            kubeconfig: None,
            queries: None,
            burst: None,
            addresses: None,
            envoy_service_namespace: None,
            envoy_service_name: "envoy".to_owned(),
            class_names: Vec::new(),
            root_namespaces: Vec::new(),
            xds: Bind { address: Ipv4Addr::LOCALHOST.into(), port: 8001 },
            xds_tls: XdsTls::default(),
            health: Bind::any(8000),
            debug_pages: Bind { address: Ipv4Addr::LOCALHOST.into(), port: 6060 },
            metrics: Bind::any(8000),
            metrics_tls: TlsPaths::default(),
            envoy_metrics: (None, None),
            envoy_metrics_tls: TlsPaths::default(),
            overload_health: (None, None),
            at_start: BTreeMap::new(),
            rate_limit: RateLimit::default(),
            authorization: Authorization::default(),
            tracing: Tracing::default(),
            warnings: Vec::new(),
        }
    }
}

impl Config {
    /// What holds if a ContourConfiguration says nothing: its own defaults, which are not those of the file.
    pub fn default_of_object() -> Self {
        let path = |path: &str| Some(PathBuf::from(path));
        let mut config = Self {
            xds: Bind::any(8001),
            xds_tls: XdsTls {
                ca: path("/certs/ca.crt"),
                certificate: path("/certs/tls.crt"),
                key: path("/certs/tls.key"),
                insecure: false,
            },
            ..Self::default()
        };
        config.each(|http| http.connection_idle = Timeout::Default);
        config
    }

    /// Reads the `spec` of a ContourConfiguration.
    pub fn of_object(spec: &serde_json::Value) -> Result<Self, Vec<Problem>> {
        let text = spec.to_string();
        let root = serde_json::from_str::<Node<'_>>(&text);
        let root = root.map_err(|error| vec![Problem::new(Code::ConfigValue, error.to_string()).field("spec")])?;
        let mut reading = Reading::new(Form::Object, None, Self::default_of_object());
        if root.value != Value::Null {
            reading.root(&root);
        }
        reading.end()
    }

    /// Reads a file; an error is every problem that it has.
    pub fn read(path: &Path) -> Result<Self, Vec<Problem>> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(path, &text),
            Err(error) => {
                let why = format!("the configuration file cannot be read: {error}");
                Err(vec![Problem::new(Code::FileNotReadable, why).at(SourceLocation::file(path.into()))])
            }
        }
    }

    /// Reads the text of a file.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Vec<Problem>> {
        let limits = Limits::default();
        let mut nodes = limits.nodes;
        let file: Arc<Path> = path.into();
        let mut reading = Reading::new(Form::File, Some((file.clone(), text)), Self::default());
        let documents = yaml::documents(text);
        match documents.first().map(|document| document.parse(&limits, &mut nodes)) {
            None | Some(Ok(None)) => {}
            Some(Err(error)) => {
                let location = SourceLocation::at(file.clone(), text, error.position());
                reading.problems.push(Problem::new(Code::ConfigNotYaml, error.to_string()).at(location));
            }
            Some(Ok(Some(root))) => reading.root(&root),
        }
        if let Some(second) = documents.get(1) {
            let position = kinds::Position { line: second.first_line, column: 1 };
            let location = SourceLocation::at(file.clone(), text, position);
            let why = "a second YAML document starts here; the file must contain one";
            reading.problems.push(Problem::new(Code::ConfigNotYaml, why).at(location));
        }
        reading.end()
    }

    /// Changes what holds for requests of both listeners.
    fn each(&mut self, change: impl Fn(&mut HttpSettings)) {
        change(&mut self.pipeline.http_settings);
        change(&mut self.pipeline.https_settings);
    }

    /// Changes the TLS versions that hosts of any dialect may speak.
    fn versions(&mut self, change: impl Fn(&mut TlsVersions)) {
        change(&mut self.pipeline.ingress.tls);
        change(&mut self.pipeline.http_proxy.tls);
        change(&mut self.pipeline.gateway.tls);
        change(&mut self.pipeline.emissary.tls);
    }

    /// How requests are written down.
    pub fn log_format(&self, json: bool) -> AccessLogFormat {
        match &self.log_line {
            _ if json => AccessLogFormat::Json(self.json_fields.clone()),
            Some(line) => AccessLogFormat::Text(line.clone()),
            None => AccessLogFormat::Envoy,
        }
    }

    /// What proxies are told, but for what flags say: where they answer probes, and whether access logs are in JSON.
    pub fn settings(self, stats: Bind, json: bool) -> pipeline::Settings {
        let format = self.log_format(json);
        let (metrics, metrics_tls) = self.envoy_metrics(stats);
        let overload_health = self.overload_health();
        let mut settings = pipeline::Settings { stats, metrics, metrics_tls, overload_health, ..self.pipeline };
        self.rate_limit.apply(&mut settings);
        self.authorization.apply(&mut settings);
        self.tracing.apply(&mut settings);
        if self.headers_on_ingresses {
            settings.ingress.request_headers.clone_from(&settings.http_proxy.request_headers);
            settings.ingress.response_headers.clone_from(&settings.http_proxy.response_headers);
        }
        if let (Some(namespace), Some(name)) = &self.fallback {
            settings.http_proxy.fallback_certificate =
                Some(ObjectRef::new(kind::SECRET, namespace.as_str(), name.as_str()));
        }
        if let (Some(namespace), Some(name)) = &self.client_certificate {
            let certificate = Some(ObjectRef::new(kind::SECRET, namespace.as_str(), name.as_str()));
            settings.http_proxy.client_certificate.clone_from(&certificate);
            settings.ingress.client_certificate = certificate;
        }
        if let (Some(namespace), Some(name)) = &self.gateway {
            settings.gateway.bound = Some((namespace.as_str().into(), name.as_str().into()));
        }
        settings.http_settings.access_log.format = format.clone();
        settings.https_settings.access_log.format = format;
        settings
    }

    /// Where Envoy shows metrics, if not beside readiness at `stats`, and with which files.
    pub fn envoy_metrics(&self, stats: Bind) -> (Option<Bind>, Option<Arc<MetricsTls>>) {
        let (address, port) = self.envoy_metrics;
        let bind = Bind { address: address.unwrap_or(stats.address), port: port.unwrap_or(stats.port) };
        let text = |path: &PathBuf| path.to_string_lossy().into();
        let TlsPaths { certificate, key, ca } = &self.envoy_metrics_tls;
        let pair = certificate.as_ref().zip(key.as_ref());
        let tls = pair.map(|(certificate, key)| MetricsTls {
            certificate: text(certificate),
            key: text(key),
            ca: ca.as_ref().map(text),
        });
        (Some(bind).filter(|bind| *bind != stats), tls.map(Arc::new))
    }

    /// Where Envoy answers probes unless the overload manager says otherwise.
    pub fn overload_health(&self) -> Option<Bind> {
        let (address, port) = self.overload_health;
        port.map(|port| Bind { address: address.unwrap_or(Ipv4Addr::UNSPECIFIED.into()), port })
    }

    /// Keys that are right by themselves and cannot be together: the key of the file, the field of the object, and why.
    fn contradictions(&self) -> Vec<(&'static str, &'static str, String)> {
        let mut found = Vec::new();
        let pairs = [
            ("tls.minimum-protocol-version", "envoy.listener.tls.minimumProtocolVersion", self.pipeline.http_proxy.tls),
            (
                "cluster.upstream-tls.minimum-protocol-version",
                "envoy.cluster.upstreamTLS.minimumProtocolVersion",
                self.pipeline.cluster.tls,
            ),
        ];
        for (key, field, versions) in pairs.into_iter().filter(|(.., versions)| versions.is_empty()) {
            let TlsVersions { lowest, highest } = versions;
            found.push((key, field, format!("the minimum version {lowest} is above the maximum version {highest}")));
        }
        let halves = [
            ("tls.fallback-certificate", "httpproxy.fallbackCertificate", &self.fallback),
            ("tls.envoy-client-certificate", "envoy.clientCertificate", &self.client_certificate),
            ("gateway.gatewayRef", "gateway.gatewayRef", &self.gateway),
        ];
        for (key, field, _) in
            halves.into_iter().filter(|(.., (namespace, name))| namespace.is_some() != name.is_some())
        {
            found.push((key, field, "both namespace and name are required".to_owned()));
        }
        found.extend(self.authorization.contradiction().map(|why| ("globalExtAuth", "globalExtAuth", why)));
        found.extend(self.tracing.contradiction().map(|why| ("tracing", "tracing", why)));
        let files = [
            ("metrics.contour", "metrics.tls", &self.metrics_tls),
            ("metrics.envoy", "envoy.metrics.tls", &self.envoy_metrics_tls),
        ];
        for (key, field, TlsPaths { certificate, key: private, ca }) in files {
            if certificate.is_some() != private.is_some() {
                found.push((key, field, "both a certificate and its private key are required".to_owned()));
            } else if ca.is_some() && certificate.is_none() {
                found.push((key, field, "a CA of clients needs a certificate and its private key".to_owned()));
            }
        }
        if self.overload_health.0.is_some() && self.overload_health.1.is_none() {
            found.push(("omEnforcedHealthListener", "envoy.omEnforcedHealth", "a port is required".to_owned()));
        }
        found
    }
}

/// A file or an object on its way.
struct Reading<'t> {
    form: Form,
    /// The file and its text; an object has neither.
    file: Option<(Arc<Path>, &'t str)>,
    config: Config,
    problems: Vec<Problem>,
}

impl<'t> Reading<'t> {
    fn new(form: Form, file: Option<(Arc<Path>, &'t str)>, config: Config) -> Self {
        Self { form, file, config, problems: Vec::new() }
    }

    fn end(self) -> Result<Config, Vec<Problem>> {
        if self.problems.is_empty() { Ok(self.config) } else { Err(self.problems) }
    }

    fn root(&mut self, root: &Node<'_>) {
        match &root.value {
            Value::Map(_) => {
                self.section(root, root, "", "");
                for (key, field, why) in self.config.contradictions() {
                    self.problem(root, Code::ConfigValue, if self.form == Form::File { key } else { field }, why);
                }
            }
            _ => self.problem(root, Code::ConfigValue, "", format!("expected a map, found {}", root.describe())),
        }
    }

    /// Goes through a map: `written` is its path in the file, `known` in the table.
    fn section(&mut self, root: &Node<'_>, map: &Node<'_>, written: &str, known: &str) {
        let Value::Map(entries) = &map.value else { return };
        for (key, value) in entries {
            let (written, known) = (join(written, &key.text), join(known, &key.text));
            let alias = ALIASES.iter().find(|(alias, _)| self.form == Form::File && *alias == known);
            let known = alias.map_or(known, |(_, name)| (*name).to_owned());
            if let Some(row) = find(self.form, &known) {
                self.key(root, row, &written, value);
            } else if is_section(self.form, &known) {
                match &value.value {
                    Value::Null => {}
                    Value::Map(_) => self.section(root, value, &written, &known),
                    _ => {
                        let why = format!("expected a map, found {}", value.describe());
                        self.problem(root, Code::ConfigValue, &written, why);
                    }
                }
            } else {
                self.unknown(root, &written, &known);
            }
        }
    }

    fn key(&mut self, root: &Node<'_>, row: &Row, written: &str, value: &Node<'_>) {
        // A key with nothing behind it is as if it was not there.
        if value.value == Value::Null {
            return;
        }
        match row.effect {
            Effect::Works(take) => {
                if row.at_start {
                    self.config.at_start.insert(row.place(self.form), format!("{:?}", value.value));
                }
                if let Err(Wrong { part, why }) = take(&mut self.config, value) {
                    self.problem(root, Code::ConfigValue, &format!("{written}{part}"), why);
                }
            }
            Effect::Nothing(why) => {
                self.config.warnings.push((Code::SettingNoEffect, format!("{written} has no effect: {why}")));
            }
        }
    }

    fn unknown(&mut self, root: &Node<'_>, written: &str, known: &str) {
        let former = FORMER.iter().find(|(former, _)| self.form == Form::File && *former == known);
        let why = match former {
            Some((former, instead)) => format!("{former} has been removed: {instead}"),
            None => match meant(self.form, known) {
                Some(meant) => format!("unknown key {written}; did you mean {meant}?"),
                None => format!("unknown key {written}"),
            },
        };
        self.misplaced(root, Code::ConfigUnknown, written, why);
    }

    /// Something is wrong with the value of a key.
    fn problem(&mut self, root: &Node<'_>, code: Code, field: &str, why: String) {
        self.problem_at(code, field, why, |file, text| SourceLocation::of_value(file, text, root, field));
    }

    /// The key should not be there.
    fn misplaced(&mut self, root: &Node<'_>, code: Code, field: &str, why: String) {
        self.problem_at(code, field, why, |file, text| SourceLocation::of_key(file, text, root, field));
    }

    fn problem_at(&mut self, code: Code, field: &str, why: String, at: impl FnOnce(Arc<Path>, &str) -> SourceLocation) {
        let problem = Problem::new(code, why);
        self.problems.push(match &self.file {
            Some((file, text)) => problem.field(field).at(at(file.clone(), text)),
            None if field.is_empty() => problem.field("spec"),
            None => problem.field(format!("spec.{field}")),
        });
    }
}

/// All rows.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    SECTIONS.iter().flat_map(|(_, rows)| rows.iter())
}

fn find(form: Form, path: &str) -> Option<&'static Row> {
    rows().find(|row| row.place(form) == path)
}

/// Whether there are keys below the path.
fn is_section(form: Form, path: &str) -> bool {
    rows().any(|row| below(row.place(form), path).is_some())
}

/// The rest of a path below another.
fn below<'p>(path: &'p str, section: &str) -> Option<&'p str> {
    if section.is_empty() { Some(path) } else { path.strip_prefix(section)?.strip_prefix('.') }
}

/// The key beside an unknown one that was probably meant.
fn meant(form: Form, path: &str) -> Option<&'static str> {
    let (section, key) = path.rsplit_once('.').unwrap_or(("", path));
    let beside = rows()
        .filter(|row| !row.place(form).is_empty())
        .filter_map(|row| below(row.place(form), section))
        .filter_map(|rest| rest.split('.').next());
    suggest::nearest(key, beside)
}

/// A key below a path; in brackets where it could be taken for a path itself.
fn join(path: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    match (plain, path) {
        (true, "") => key.to_owned(),
        (true, _) => format!("{path}.{key}"),
        (false, _) => format!("{path}[\"{key}\"]"),
    }
}
