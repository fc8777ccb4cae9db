//! The configuration file, `-c`: Contour's keys, as far as their features exist.
//!
//! In: the text of the file. Out: a [`Config`], or every problem of the file with its line. All that is known about a key
//! stands in one [`row`] of [`SECTIONS`]: its place, its default, how it is taken, or that it is not supported yet; the
//! page in `docs` is written from the same rows. A key that is unknown, or that would have no effect, is an error: a
//! setting that is ignored in silence is found out at the worst time.

mod headers;
mod program;
mod proxies;
mod rate_limit;
pub mod row;
#[cfg(test)]
pub(super) mod tests;
mod tls;
mod value;

use self::rate_limit::RateLimit;
use self::row::{Effect, Row};
use self::value::Wrong;
use kinds::{Node, Value, suggest};
use model::Code;
use model::listener::{AccessLogFormat, HttpSettings};
use model::tls::TlsVersions;
use pipeline::settings::Bind;
use source::yaml::{self, Limits};
use source::{Problem, SourceLocation};
use status::Addresses;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Every key there is, in the order of the page.
pub const SECTIONS: &[(&str, &[Row])] = &[
    ("General", program::PROGRAM),
    ("Objects", program::OBJECTS),
    ("Access logs", proxies::ACCESS_LOG),
    ("TLS", proxies::TLS),
    ("Timeouts", proxies::TIMEOUTS),
    ("Listeners", proxies::LISTENERS),
    ("Clusters", proxies::CLUSTERS),
    ("Headers", headers::HEADERS),
    ("Metrics and probes", program::METRICS),
    ("Rate limit service", rate_limit::RATE_LIMIT),
    ("External services", program::SERVICES),
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
    /// The kubeconfig.
    pub kubeconfig: Option<PathBuf>,
    /// How often a second the API server may be asked.
    pub queries: Option<f64>,
    /// How often at once.
    pub burst: Option<u32>,
    /// The addresses in the status of Ingresses.
    pub addresses: Option<Addresses>,
    /// The namespace of the proxies' Service.
    pub envoy_service_namespace: Option<String>,
    /// Its name.
    pub envoy_service_name: String,
    /// Where metrics are shown.
    pub metrics: Bind,
    /// The rate limit service.
    pub rate_limit: RateLimit,
    /// What is to be said about the file, though it can be used.
    pub warnings: Vec<(Code, String)>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            pipeline: pipeline::Settings::default(),
            fallback: (None, None),
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
            metrics: Bind::any(8000),
            rate_limit: RateLimit::default(),
            warnings: Vec::new(),
        }
    }
}

impl Config {
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
        let mut reading = Reading { file: path.into(), text, config: Self::default(), problems: Vec::new() };
        let documents = yaml::documents(text);
        match documents.first().map(|document| document.parse(&limits, &mut nodes)) {
            None | Some(Ok(None)) => {}
            Some(Err(error)) => {
                let location = SourceLocation::at(reading.file.clone(), text, error.position());
                reading.problems.push(Problem::new(Code::ConfigNotYaml, error.to_string()).at(location));
            }
            Some(Ok(Some(root))) => reading.root(&root),
        }
        if let Some(second) = documents.get(1) {
            let position = kinds::Position { line: second.first_line, column: 1 };
            let location = SourceLocation::at(reading.file.clone(), text, position);
            let why = "a second YAML document starts here; the file must contain one";
            reading.problems.push(Problem::new(Code::ConfigNotYaml, why).at(location));
        }
        if reading.problems.is_empty() { Ok(reading.config) } else { Err(reading.problems) }
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
    }

    /// How requests are written down.
    pub fn log_format(&self, json: bool) -> AccessLogFormat {
        match &self.log_line {
            _ if json => AccessLogFormat::Json(self.json_fields.clone()),
            Some(line) => AccessLogFormat::Text(line.clone()),
            None => AccessLogFormat::Envoy,
        }
    }

    /// Keys that are right by themselves and cannot be together.
    fn contradictions(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        let pairs = [
            ("tls.minimum-protocol-version", self.pipeline.http_proxy.tls),
            ("cluster.upstream-tls.minimum-protocol-version", self.pipeline.cluster.tls),
        ];
        for (key, versions) in pairs.into_iter().filter(|(_, versions)| versions.is_empty()) {
            let TlsVersions { lowest, highest } = versions;
            found.push((key, format!("the minimum version {lowest} is above the maximum version {highest}")));
        }
        if self.fallback.0.is_some() != self.fallback.1.is_some() {
            found.push(("tls.fallback-certificate", "both namespace and name are required".to_owned()));
        }
        if self.gateway.0.is_some() != self.gateway.1.is_some() {
            found.push(("gateway.gatewayRef", "both namespace and name are required".to_owned()));
        }
        found
    }
}

/// A file on its way.
struct Reading<'t> {
    file: Arc<Path>,
    text: &'t str,
    config: Config,
    problems: Vec<Problem>,
}

impl Reading<'_> {
    fn root(&mut self, root: &Node<'_>) {
        match &root.value {
            Value::Map(_) => {
                self.section(root, root, "", "");
                for (key, why) in self.config.contradictions() {
                    self.problem(root, Code::ConfigValue, key, why);
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
            let known = ALIASES.iter().find(|(alias, _)| *alias == known).map_or(known, |(_, name)| (*name).to_owned());
            if let Some(row) = find(&known) {
                self.key(root, row, &written, value);
            } else if is_section(&known) {
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
                if let Err(Wrong { part, why }) = take(&mut self.config, value) {
                    self.problem(root, Code::ConfigValue, &format!("{written}{part}"), why);
                }
            }
            Effect::NotYet => {
                self.misplaced(root, Code::ConfigUnsupported, written, format!("{written} is not supported yet"));
            }
            Effect::Nothing(why) => {
                self.config.warnings.push((Code::SettingNoEffect, format!("{written} has no effect: {why}")));
            }
        }
    }

    fn unknown(&mut self, root: &Node<'_>, written: &str, known: &str) {
        let why = match FORMER.iter().find(|(former, _)| *former == known) {
            Some((former, instead)) => format!("{former} has been removed: {instead}"),
            None => match meant(known) {
                Some(meant) => format!("unknown key {written}; did you mean {meant}?"),
                None => format!("unknown key {written}"),
            },
        };
        self.misplaced(root, Code::ConfigUnknown, written, why);
    }

    /// Something is wrong with the value of a key.
    fn problem(&mut self, root: &Node<'_>, code: Code, field: &str, why: String) {
        let location = SourceLocation::of_value(self.file.clone(), self.text, root, field);
        self.problems.push(Problem::new(code, why).field(field).at(location));
    }

    /// The key should not be there.
    fn misplaced(&mut self, root: &Node<'_>, code: Code, field: &str, why: String) {
        let location = SourceLocation::of_key(self.file.clone(), self.text, root, field);
        self.problems.push(Problem::new(code, why).field(field).at(location));
    }
}

/// All rows.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    SECTIONS.iter().flat_map(|(_, rows)| rows.iter())
}

fn find(path: &str) -> Option<&'static Row> {
    rows().find(|row| row.path == path)
}

/// Whether there are keys below the path.
fn is_section(path: &str) -> bool {
    rows().any(|row| below(row.path, path).is_some())
}

/// The rest of a path below another.
fn below<'p>(path: &'p str, section: &str) -> Option<&'p str> {
    if section.is_empty() { Some(path) } else { path.strip_prefix(section)?.strip_prefix('.') }
}

/// The key beside an unknown one that was probably meant.
fn meant(path: &str) -> Option<&'static str> {
    let (section, key) = path.rsplit_once('.').unwrap_or(("", path));
    let beside = rows().filter_map(|row| below(row.path, section)).filter_map(|rest| rest.split('.').next());
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
