//! RateLimitServices: who is asked whether there are too many requests, by the labels of Mappings.
//!
//! In: all RateLimitServices of the instance. Out: the one in effect: of Sesame's namespace before others, then the oldest; all others
//! are told. One that cannot be used is not asked, and requests pass, unless it says `failure_mode_deny`.

use crate::{
    EmissaryView, Problems, Settings,
    mapping::{labels, upstream},
    precedence,
    upstream_service::Reading,
};
use kinds::{
    emissary::{
        RateLimitService,
        auth_service::ProtocolVersion,
        rate_limit_service::{GrpcSettings, RateLimitServiceSpec},
    },
    kind,
};
use model::{
    Code, ObjectRef, Translation, Verdict,
    cluster::{ClusterOverrides, Extension},
    listener,
};
use std::{collections::BTreeMap, sync::Arc};

/// How long an answer may take where nothing is said, in milliseconds.
const TIMEOUT: u64 = 20;

/// The RateLimitServices of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimitServices {
    /// The object in effect, and the domain of its limits.
    pub in_effect: RateLimitServiceInEffect,
    /// What proxies ask, without an extension where it cannot be called; nothing where requests pass unasked.
    pub service: Option<(Option<Extension>, listener::RateLimitService)>,
    /// What is told about each object.
    pub verdicts: BTreeMap<ObjectRef, Vec<Verdict>>,
    /// Whether it depends on a Secret that has not been read yet.
    pub is_pending: bool,
}

/// What a Mapping needs to know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimitServiceInEffect {
    /// The object.
    pub object: ObjectRef,
    /// The domain whose labels it is asked about.
    pub domain: Arc<str>,
    /// Whether it can be asked.
    pub is_usable: bool,
}

impl RateLimitServices {
    /// The one in effect, and what is told about all of them; nothing where there is none. Where the operator names a rate limit
    /// service, none is.
    pub fn of<'a>(
        objects: impl Iterator<Item = &'a RateLimitService>,
        is_operators: bool,
        view: &mut impl EmissaryView,
        settings: &Settings,
    ) -> Option<Self> {
        let mut objects: Vec<&RateLimitService> = objects.collect();
        let order =
            |object: &RateLimitService| (*object.meta.namespace != *settings.namespace, precedence(&object.meta, 0));
        objects.sort_by_cached_key(|object| order(object));
        let first = objects.first()?;
        let object = subject(first);
        let mut verdicts = BTreeMap::new();
        let mut problems = Problems::new(&object);
        let (namespace, code) = (&*first.meta.namespace, Code::RateLimitServiceInvalid);
        let mut reading = Reading { namespace, code, view, settings, problems: &mut problems, is_pending: false };
        let (domain, service) = read(&first.spec, &mut reading);
        let is_pending = reading.is_pending;
        let is_usable = !problems.is_refused() && !is_operators;
        // Whoever writes something there that cannot be read does not mean that requests pass.
        let is_denying = first.spec.failure_mode_deny.get().map_or(true, |deny| deny.unwrap_or_default());
        let service = match service {
            Some((extension, service)) if is_usable => Some((Some(extension), service)),
            _ if is_denying => {
                Some((None, listener::RateLimitService { domain: domain.clone(), ..Default::default() }))
            }
            _ => None,
        };
        let service = service.filter(|_| !is_operators);
        verdicts.insert(object.clone(), problems.into_verdicts());
        let holder = match is_operators {
            true => "the rate limit service of Sesame's configuration is in effect".to_owned(),
            false => format!("{object} is in effect"),
        };
        for other in objects.iter().skip(if is_operators { 0 } else { 1 }) {
            let verdict = Verdict::new(Code::EmissaryOlderObjectInEffect, subject(other).at(""), holder.clone());
            verdicts.insert(subject(other), vec![verdict]);
        }
        Some(Self { in_effect: RateLimitServiceInEffect { object, domain, is_usable }, service, verdicts, is_pending })
    }
}

fn read(
    spec: &RateLimitServiceSpec,
    reading: &mut Reading<'_, '_, impl EmissaryView>,
) -> (Arc<str>, Option<(Extension, listener::RateLimitService)>) {
    let called = reading.service("service", &spec.service, Some(&spec.tls));
    let timeout = reading.milliseconds("timeout_ms", &spec.timeout_ms, TIMEOUT);
    let domain = reading.problems.optional("domain", &spec.domain).filter(|domain| !domain.is_empty());
    let of_module = || reading.view.mapping_defaults().labels.domain.clone();
    let domain: Arc<str> = domain.map_or_else(of_module, |domain| (&**domain).into());
    if !labels::is_domain(&domain) {
        reading.refuse("domain", labels::domain_rule());
    }
    match reading.problems.optional("protocol_version", &spec.protocol_version) {
        None | Some(ProtocolVersion::V3) => {}
        Some(version) => {
            reading.refuse("protocol_version", format!("must be v3, not `{}`", version.as_str().escape_debug()));
        }
    }
    let deny = reading.problems.optional("failure_mode_deny", &spec.failure_mode_deny).copied().unwrap_or_default();
    let grpc = reading.problems.optional("grpc", &spec.grpc);
    let GrpcSettings { use_resource_exhausted_code } = grpc.map(|grpc| (**grpc).clone()).unwrap_or_default();
    let stats_name = reading.problems.optional("stats_name", &spec.stats_name).filter(|name| !name.is_empty());
    let overrides =
        ClusterOverrides { stats_name: stats_name.map(|name| upstream::in_stats(name)), ..ClusterOverrides::default() };
    let settings = listener::RateLimitService {
        domain: domain.clone(),
        fail_open: !deny,
        response_headers: false,
        resource_exhausted: use_resource_exhausted_code.unwrap_or_default(),
    };
    let found = called.zip(timeout).map(|(called, response_timeout)| {
        let extension = called.extension(true, overrides, reading.view);
        (Extension { response_timeout, ..extension }, settings)
    });
    (domain, found)
}

/// What is told about a RateLimitService: it asks for nothing by itself.
pub fn translate(subject: ObjectRef, all: &RateLimitServices) -> Translation {
    let verdicts = all.verdicts.get(&subject).cloned().unwrap_or_default();
    Translation { verdicts, ..Translation::empty(subject) }
}

fn subject(object: &RateLimitService) -> ObjectRef {
    ObjectRef::new(kind::RATE_LIMIT_SERVICE, object.meta.namespace.clone(), object.meta.name.clone())
}
