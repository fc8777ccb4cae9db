//! What the Module says where a Mapping does not: timeouts, retries, load balancing, headers, CORS, and which requests are kept away.
//!
//! In: the settings of the Module in effect. Out: values that every Mapping may take as they are, so that a value that is not valid is
//! told once, on the Module. A key that keeps requests away and cannot be served closes all Mappings ([`Closed`]).

use super::{
    forward::{milliseconds, retry},
    headers::{self, DefaultHeaders, cors},
    labels::DefaultLabels,
    upstream::{balance, breakers, in_stats, keepalive},
};
use crate::{Problem, Problems, Settings, module::scripts};
use kinds::{
    Checked,
    emissary::module::{
        ModuleSettings,
        filters::Principals,
        settings::{Defaults, FieldDefaults},
    },
};
use model::{
    Code, ObjectRef, Timeout,
    cluster::{CircuitBreakers, Keepalive, LoadBalancing},
    route::{AddressOf, Cidr, Cors, Hash, IpFilter, RetryPolicy},
};
use std::sync::Arc;

/// The most ranges of addresses: every route has them.
const MOST_RANGES: usize = 256;

/// What holds for Mappings that say nothing themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingDefaults {
    /// Why no request may pass, if none may.
    pub closed: Option<Closed>,
    /// The clients that may send requests.
    pub ip_filter: Option<IpFilter>,
    /// Whether requests with an escaped slash in the path are refused.
    pub rejects_escaped_slashes: bool,
    /// Whether requests go through the script of the Module.
    pub runs_script: bool,
    /// The timeout of responses.
    pub timeout: Option<Timeout>,
    /// How long a connection to a service may be idle.
    pub idle: Option<Timeout>,
    /// How long a connection to a service may be used.
    pub lifetime: Option<Timeout>,
    /// Which requests are tried again.
    pub retry: Option<RetryPolicy>,
    /// Cross-origin requests.
    pub cors: Option<Arc<Cors>>,
    /// The limits of requests of the default and of the high priority.
    pub breakers: Option<(CircuitBreakers, CircuitBreakers)>,
    /// How an endpoint is chosen.
    pub balance: Option<(LoadBalancing, Vec<Hash>)>,
    /// TCP keepalive.
    pub keepalive: Option<Keepalive>,
    /// The resolver.
    pub resolver: Option<Box<str>>,
    /// Whether requests carry `l5d-dst-override`.
    pub linkerd: bool,
    /// Headers of requests.
    pub request_headers: DefaultHeaders,
    /// Headers of responses.
    pub response_headers: DefaultHeaders,
    /// The name of clusters in statistics.
    pub stats_name: Option<Arc<str>>,
    /// Whether IPv4 addresses of outside names are used.
    pub ipv4: bool,
    /// Whether IPv6 addresses of outside names are used.
    pub ipv6: bool,
    /// Whether services that name no namespace are those of Sesame's.
    pub services_of_instance: bool,
    /// Labels of rate limits.
    pub labels: DefaultLabels,
}

impl Default for MappingDefaults {
    fn default() -> Self {
        Self {
            closed: None,
            ip_filter: None,
            rejects_escaped_slashes: false,
            runs_script: false,
            timeout: None,
            idle: None,
            lifetime: None,
            retry: None,
            cors: None,
            breakers: None,
            balance: None,
            keepalive: None,
            resolver: None,
            linkerd: false,
            request_headers: DefaultHeaders::default(),
            response_headers: DefaultHeaders::default(),
            stats_name: None,
            ipv4: true,
            ipv6: false,
            services_of_instance: false,
            labels: DefaultLabels::default(),
        }
    }
}

/// Why no request may pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The Module.
    pub module: ObjectRef,
    /// Its key.
    pub key: &'static str,
    /// What is in the way.
    pub why: Box<str>,
}

/// Reads the defaults; what is not valid is told, and is as if it was not there.
pub fn read(
    module: &ObjectRef,
    written: &ModuleSettings,
    settings: &Settings,
    problems: &mut Problems<'_>,
) -> MappingDefaults {
    let mut closed = None;
    let mut close = |key: &'static str, why: String| {
        closed.get_or_insert(Closed { module: module.clone(), key, why: why.into() });
    };
    let ip_filter = ip_filter(written, problems, &mut close);
    let rejects =
        problems.optional("reject_requests_with_escaped_slashes", &written.reject_requests_with_escaped_slashes);
    if rejects.is_none() && written.reject_requests_with_escaped_slashes.fault().is_some() {
        close("reject_requests_with_escaped_slashes", "it cannot be read".to_owned());
    }
    let mut runs_script = false;
    match scripts::read(module, written, settings) {
        scripts::Read::None | scripts::Read::Ignored => {}
        scripts::Read::Run(_) => runs_script = true,
        scripts::Read::Refused(why) => close(scripts::KEY, why),
    }
    let mut flag = |key: &str, value: &Checked<Option<bool>>| problems.optional(key, value).copied();
    let linkerd = flag("add_linkerd_headers", &written.add_linkerd_headers).unwrap_or_default();
    let (ipv4, ipv6) = (flag("enable_ipv4", &written.enable_ipv4), flag("enable_ipv6", &written.enable_ipv6));
    let of_instance = &written.use_ambassador_namespace_for_service_resolution;
    let services_of_instance = flag("use_ambassador_namespace_for_service_resolution", of_instance).unwrap_or_default();
    let mut span = |key: &str, value: &Checked<Option<i64>>| milliseconds(problems, key, value).flatten();
    let timeout = span("cluster_request_timeout_ms", &written.cluster_request_timeout_ms);
    let idle = span("cluster_idle_timeout_ms", &written.cluster_idle_timeout_ms);
    let lifetime = span("cluster_max_connection_lifetime_ms", &written.cluster_max_connection_lifetime_ms);
    let retry = problems.optional("retry_policy", &written.retry_policy).and_then(|written| retry(problems, written));
    let cors = problems.optional("cors", &written.cors).and_then(|written| cors(problems, written)).map(Arc::new);
    let balance = problems.optional("load_balancer", &written.load_balancer).map(|written| balance(problems, written));
    let defaults = problems.optional("defaults", &written.defaults).map(|written| &**written);
    let [request_headers, response_headers] = default_headers(defaults, problems);
    MappingDefaults {
        closed,
        ip_filter,
        rejects_escaped_slashes: rejects.copied().unwrap_or_default(),
        runs_script,
        timeout,
        idle,
        lifetime,
        retry,
        cors,
        breakers: breakers(problems, Code::MappingPolicy, &written.circuit_breakers),
        balance,
        keepalive: keepalive(problems, &written.keepalive),
        resolver: problems.optional("resolver", &written.resolver).filter(|name| !name.is_empty()).cloned(),
        linkerd,
        request_headers,
        response_headers,
        stats_name: default_stats_name(defaults, problems),
        ipv4: ipv4.unwrap_or(true),
        ipv6: ipv6.unwrap_or(false),
        services_of_instance,
        labels: DefaultLabels::read(written, problems),
    }
}

/// The clients that may send requests; where a list cannot be served, none may.
fn ip_filter(
    written: &ModuleSettings,
    problems: &mut Problems<'_>,
    close: &mut impl FnMut(&'static str, String),
) -> Option<IpFilter> {
    let mut list = |key: &'static str, value: &Checked<Option<Principals>>, allow: bool| {
        let Some(principals) = problems.read(key, value) else {
            close(key, "it cannot be read".to_owned());
            return None;
        };
        let principals = principals.as_ref()?;
        let ranges = ranges(key, principals);
        let ranges = ranges.inspect_err(|problem| close(key, problem.why.to_string()));
        problems.parsed(ranges).filter(|ranges| !ranges.is_empty()).map(|ranges| IpFilter { allow, ranges })
    };
    let allowed = list("ip_allow", &written.ip_allow, true);
    let denied = list("ip_deny", &written.ip_deny, false);
    match (allowed, denied) {
        (Some(_), Some(_)) => {
            let why = "ip_allow and ip_deny may not both be set";
            problems.refuse(Problem::new(Code::ModuleValue, "ip_deny", why));
            close("ip_deny", why.to_owned());
            None
        }
        (allowed, denied) => allowed.or(denied),
    }
}

fn ranges(key: &str, principals: &Principals) -> Result<Vec<(AddressOf, Cidr)>, Problem> {
    let reject = |index: usize, why: String| Problem::new(Code::ModuleValue, &format!("{key}[{index}]"), why);
    if let Some(fault) = principals.faults().next() {
        return Err(Problem::new(Code::ModuleValue, key, fault.to_string()));
    }
    let ranges: Result<Vec<_>, _> = principals
        .good()
        .map(|(index, principal)| {
            let (of, text) = match (&principal.remote, &principal.peer) {
                (Some(text), None) => (AddressOf::Remote, text),
                (None, Some(text)) => (AddressOf::Peer, text),
                _ => return Err(reject(index, "must have exactly one of remote and peer".to_owned())),
            };
            Cidr::parse(text).map(|cidr| (of, cidr)).map_err(|error| reject(index, error.to_string()))
        })
        .collect();
    let ranges = ranges?;
    match ranges.len() {
        0..=MOST_RANGES => Ok(ranges),
        count => Err(Problem::new(Code::ModuleValue, key, format!("{count} ranges are more than {MOST_RANGES}"))),
    }
}

/// The headers of requests and of responses, of Mappings first.
fn default_headers(defaults: Option<&Defaults>, problems: &mut Problems<'_>) -> [DefaultHeaders; 2] {
    let Some(all) = defaults else { return Default::default() };
    let own = problems.optional("defaults.httpmapping", &all.httpmapping).map(|own| &**own);
    let none = FieldDefaults::default();
    let (own, at) =
        (own.unwrap_or(&none), |name: &str| [format!("defaults.httpmapping.{name}"), format!("defaults.{name}")]);
    let [first, second] = at("add_request_headers");
    let added = headers::added(problems, &first, &own.add_request_headers)
        .or_else(|| headers::added(problems, &second, &all.add_request_headers));
    let [first, second] = at("remove_request_headers");
    let removed = headers::removed(problems, &first, &own.remove_request_headers)
        .or_else(|| headers::removed(problems, &second, &all.remove_request_headers));
    let of_requests = DefaultHeaders { added, removed };
    let [first, second] = at("add_response_headers");
    let of_mappings = headers::added(problems, &first, &own.add_response_headers);
    let field = if of_mappings.is_some() { first } else { second };
    let added = of_mappings.or_else(|| headers::added(problems, &field, &all.add_response_headers));
    added.iter().for_each(|added| headers::report_request_values(problems, &field, added));
    let [first, second] = at("remove_response_headers");
    let removed = headers::removed(problems, &first, &own.remove_response_headers)
        .or_else(|| headers::removed(problems, &second, &all.remove_response_headers));
    [of_requests, DefaultHeaders { added, removed }]
}

fn default_stats_name(defaults: Option<&Defaults>, problems: &mut Problems<'_>) -> Option<Arc<str>> {
    let all = defaults?;
    let own = all.httpmapping.ok().and_then(Option::as_deref);
    let own = own.and_then(|own| problems.optional("defaults.httpmapping.stats_name", &own.stats_name));
    let name = own.or_else(|| problems.optional("defaults.stats_name", &all.stats_name));
    name.filter(|name| !name.is_empty()).map(|name| in_stats(name))
}
