//! Module: which one is in effect, what it says to Mappings, Hosts and Listeners, and what is told about each.
//!
//! Each reader takes a part ([`MappingDefaults`], [`ClientDefaults`], settings of HTTP), so that an edit reaches whom it concerns.

mod access_log;
pub mod clients;
mod grpc_stats;
pub mod http;
mod runtime_flags;
pub mod scripts;
mod unserved;

use crate::{
    EmissaryView, Problem, Problems, Settings,
    mapping::defaults::{self, Closed, MappingDefaults},
    precedence,
};
use clients::ClientDefaults;
use kinds::{
    emissary::{
        Module,
        module::{AMBASSADOR, AUTHENTICATION, ModuleSettings, TLS},
    },
    kind,
};
use model::{Code, ObjectRef, Translation, listener::HttpOverrides};
use std::{collections::BTreeMap, sync::Arc};

/// The Module `ambassador` that is in effect, and its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleInEffect {
    /// The object.
    pub object: ObjectRef,
    /// Its settings; each key that cannot be read is [bad](kinds::Checked) by itself.
    pub settings: Arc<ModuleSettings>,
    /// Whether they can be read at all; otherwise they are empty.
    pub is_readable: bool,
}

/// Which of all Modules `ambassador` is in effect.
pub fn in_effect<'m>(modules: impl Iterator<Item = &'m Module>, settings: &Settings) -> Option<ModuleInEffect> {
    let module = first(modules, AMBASSADOR, settings)?;
    let config = module.spec.config.ok();
    let settings = config.and_then(|config| config.as_deref().cloned()).unwrap_or_default();
    Some(ModuleInEffect { object: subject(module), settings: Arc::new(settings), is_readable: config.is_some() })
}

/// Which of all Modules `authentication` stands for an AuthService that cannot be used.
pub fn authentication<'m>(modules: impl Iterator<Item = &'m Module>, settings: &Settings) -> Option<ObjectRef> {
    first(modules, AUTHENTICATION, settings).map(subject)
}

/// Of all Modules with a name, that of Sesame's namespace before others, then the oldest: no tenant replaces the operator's.
fn first<'m>(modules: impl Iterator<Item = &'m Module>, name: &'static str, settings: &Settings) -> Option<&'m Module> {
    let named = modules.filter(|module| *module.meta.name == *name);
    named.min_by_key(|module| (*module.meta.namespace != *settings.namespace, precedence(&module.meta, 0)))
}

impl ModuleInEffect {
    /// What Mappings take from it.
    pub fn mapping_defaults(&self, settings: &Settings) -> MappingDefaults {
        if !self.is_readable {
            let why = "its settings cannot be read".into();
            let closed = Some(Closed { module: self.object.clone(), key: "config", why });
            return MappingDefaults { closed, ..MappingDefaults::default() };
        }
        defaults::read(&self.object, &self.settings, settings, &mut Problems::of_module(&self.object))
    }

    /// What Hosts and TLSContexts take from it.
    pub fn client_defaults(&self) -> ClientDefaults {
        clients::read(&self.settings, &mut Problems::of_module(&self.object))
    }

    /// The script that is run for requests of Mappings, if one is.
    pub fn script(&self, settings: &Settings) -> Option<Arc<str>> {
        match scripts::read(&self.object, &self.settings, settings) {
            scripts::Read::Run(script) => Some(script),
            scripts::Read::None | scripts::Read::Ignored | scripts::Read::Refused(_) => None,
        }
    }

    /// Runtime values of proxies.
    pub fn runtime_flags(&self, settings: &Settings) -> BTreeMap<Arc<str>, Arc<str>> {
        runtime_flags::read(&self.object, &self.settings, settings, &mut Problems::of_module(&self.object))
    }

    /// What Listeners with ports of their own take from it.
    pub fn http(&self, settings: &Settings) -> Option<Arc<HttpOverrides>> {
        http::combined(http::read(&self.object, &self.settings, settings, &mut Problems::of_module(&self.object)))
    }
}

/// What is told about a Module: it asks for nothing by itself.
pub fn translate(
    module: &Module,
    in_effect: Option<&ModuleInEffect>,
    view: &mut impl EmissaryView,
    settings: &Settings,
) -> Translation {
    let subject = subject(module);
    let mut problems = Problems::of_module(&subject);
    let mut winner = None;
    if *module.meta.name == *AMBASSADOR {
        winner = in_effect.map(|other| &other.object).filter(|other| **other != subject);
        if let (None, Ok(Some(written))) = (winner, module.spec.config.get()) {
            report(&subject, written, view, settings, &mut problems);
        }
    }
    let mut verdicts = problems.into_verdicts();
    if let Some(other) = winner {
        let why = format!("{other} comes first and is in effect");
        let verdict = model::Verdict::new(Code::EmissaryOlderObjectInEffect, subject.at(""), why);
        verdicts.push(verdict.related_to(other.at("")));
    }
    let found = by_name(&subject, view);
    verdicts.extend(found.map(|(code, why)| model::Verdict::new(code, subject.at("metadata.name"), why)));
    Translation { verdicts, ..Translation::empty(subject) }
}

/// What is told about a Module whose name says that its settings are not served.
fn by_name(subject: &ObjectRef, view: &mut impl EmissaryView) -> Option<(Code, String)> {
    let name = &*subject.name;
    let no_effect = |instead: &str| (Code::EmissaryNoEffect, format!("a Module `{name}` has no effect; {instead}"));
    match name {
        AMBASSADOR => None,
        TLS => Some(no_effect("write a TLSContext, and name it in `tlsContext` of a Host or in `tls` of a Mapping")),
        AUTHENTICATION => Some(match view.auth_service() {
            Some(service) if service.object == *subject => {
                let why =
                    format!("a Module `{name}` is an AuthService that cannot be used; replace it by an AuthService");
                (Code::AuthServiceInvalid, why)
            }
            Some(service) => no_effect(&format!("{} is in effect", service.object)),
            None => no_effect("the operator's authorization server is asked instead"),
        }),
        _ => Some(no_effect(&format!("settings are in the Module `{AMBASSADOR}`"))),
    }
}

/// What is told about the settings of the Module in effect.
fn report(
    subject: &ObjectRef,
    written: &ModuleSettings,
    view: &mut impl EmissaryView,
    settings: &Settings,
    problems: &mut Problems<'_>,
) {
    for (key, instead) in written.dead_keys() {
        let instead = instead.map(|instead| format!("; use {instead}")).unwrap_or_default();
        problems.add(Problem::new(Code::ModuleKeyIgnored, key, format!("`{key}` has no effect{instead}")));
    }
    unserved::report(written, problems);
    scripts::report(subject, written, settings, problems);
    runtime_flags::read(subject, written, settings, problems);
    defaults::read(subject, written, settings, problems);
    clients::read(written, problems);
    let keys = http::read(subject, written, settings, problems);
    for listener in view.listeners().served.iter().filter(|listener| listener.claim.is_none()) {
        let own = if listener.is_tls { &settings.own.https } else { &settings.own.http };
        for key in own.iter().flat_map(|own| http::differing(&keys, own)) {
            let why = format!(
                "{} is on the port of a shared listener, where the settings of Sesame hold and not this key",
                listener.object
            );
            problems.add(Problem::new(Code::EmissaryListenerSettings, key, why));
        }
    }
}

fn subject(module: &Module) -> ObjectRef {
    ObjectRef::new(kind::MODULE, module.meta.namespace.clone(), module.meta.name.clone())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::Scripts;
    use serde_json::json;

    fn module(namespace: &str, name: &str, created: &str, config: serde_json::Value) -> Arc<Module> {
        let object = json!({
            "metadata": { "name": name, "namespace": namespace, "creationTimestamp": created }, "spec": { "config": config },
        });
        let decoded = kinds::decode_json(kind::MODULE, object.to_string().as_bytes()).unwrap();
        decoded.object.get::<Module>().unwrap().clone()
    }

    fn reported(module: &Module, in_effect: Option<&ModuleInEffect>) -> Vec<String> {
        let mut view = crate::tests::Objects::default();
        let verdicts = translate(module, in_effect, &mut view, &Settings::default()).verdicts;
        verdicts
            .iter()
            .map(|verdict| format!("{} {}: {}", verdict.code, verdict.origin.field, verdict.message))
            .collect()
    }

    #[test]
    fn the_oldest_module_is_in_effect_and_the_other_is_told() {
        let old =
            module("b", "ambassador", "2026-01-01T00:00:00Z", json!({ "server_name": "old", "use_proxy_proto": true }));
        let new = module("a", "ambassador", "2026-01-02T00:00:00Z", json!({ "server_name": "new" }));
        let other = module("a", "statsd", "2025-01-01T00:00:00Z", json!({}));
        let tls = module("a", "tls", "2025-01-01T00:00:00Z", json!({ "server": { "secret": "cert" } }));
        for order in [[&old, &new, &other], [&other, &new, &old]] {
            let found = in_effect(order.into_iter().map(|module| &**module), &Settings::default()).unwrap();
            assert_eq!(found.object.to_string(), "Module b/ambassador");
            let http = found.http(&Settings::default()).unwrap();
            assert_eq!(http.server_name.as_deref(), Some("old"));
        }
        let found = in_effect([&*old, &*new].into_iter(), &Settings::default());
        assert_eq!(found.as_ref().and_then(|found| found.mapping_defaults(&Settings::default()).closed), None);
        assert_eq!(
            reported(&old, found.as_ref()),
            ["SES9002 spec.config.use_proxy_proto: `use_proxy_proto` has no effect; use `protocolStack` of a Listener",]
        );
        assert_eq!(reported(&new, found.as_ref()), ["SES9003 : Module b/ambassador comes first and is in effect"]);
        assert_eq!(
            reported(&other, found.as_ref()),
            ["SES9001 metadata.name: a Module `statsd` has no effect; settings are in the Module `ambassador`"]
        );
        assert_eq!(
            reported(&tls, found.as_ref()),
            [
                "SES9001 metadata.name: a Module `tls` has no effect; write a TLSContext, and name it in `tlsContext` of a Host or in `tls` of a Mapping"
            ]
        );
        assert_eq!(in_effect(std::iter::empty(), &Settings::default()), None);
    }

    #[test]
    fn no_module_of_another_namespace_is_in_effect_beside_the_operators() {
        let tenant = module("a", "ambassador", "2020-01-01T00:00:00Z", json!({ "server_name": "tenant" }));
        let own = module("sesame", "ambassador", "2026-01-01T00:00:00Z", json!({ "server_name": "own" }));
        let settings = Settings { namespace: "sesame".into(), ..Settings::default() };
        for order in [[&tenant, &own], [&own, &tenant]] {
            let found = in_effect(order.into_iter().map(|module| &**module), &settings);
            assert_eq!(found.as_ref().unwrap().object.to_string(), "Module sesame/ambassador");
            assert_eq!(
                reported(&tenant, found.as_ref()),
                ["SES9003 : Module sesame/ambassador comes first and is in effect"]
            );
        }
    }

    #[test]
    fn a_key_that_keeps_requests_away_and_cannot_be_served_closes_mappings() {
        let settings = Settings::default();
        for (config, key) in [
            (
                json!({ "ip_deny": [{ "remote": "10.0.0.0/8" }], "ip_allow": [{ "peer": "10.0.0.0/8" }] }),
                Some("ip_deny"),
            ),
            (json!({ "ip_deny": [{ "remote": "10.0.0.0/8" }] }), None),
            (json!({ "ip_deny": [{ "remote": "10.0.0.0/8", "peer": "::1" }] }), Some("ip_deny")),
            (json!({ "ip_allow": [{ "remote": "everybody" }] }), Some("ip_allow")),
            (json!({ "ip_allow": "nobody" }), Some("ip_allow")),
            (json!({ "ip_allow": [] }), None),
            (json!({ "reject_requests_with_escaped_slashes": "yes" }), Some("reject_requests_with_escaped_slashes")),
            (json!({ "lua_scripts": "function envoy_on_request(handle) end" }), Some("lua_scripts")),
            (json!({ "lua_scripts": 7 }), Some("lua_scripts")),
            (json!(["no settings"]), Some("config")),
        ] {
            let written = module("a", "ambassador", "2026-01-01T00:00:00Z", config.clone());
            let found = in_effect([&*written].into_iter(), &settings).unwrap();
            let closed = found.mapping_defaults(&settings).closed;
            assert_eq!(closed.map(|closed| closed.key), key, "{config}");
        }
        let scripts = module("a", "ambassador", "2026-01-01T00:00:00Z", json!({ "lua_scripts": "x" }));
        let found = in_effect([&*scripts].into_iter(), &settings).unwrap();
        let with =
            |scripts: Scripts, namespace: &str| Settings { scripts, namespace: namespace.into(), ..settings.clone() };
        for (settings, closes, is_run) in [
            (with(Scripts::Refuse, "a"), true, false),
            (with(Scripts::Ignore, "b"), false, false),
            (with(Scripts::Run, "b"), true, false),
            (with(Scripts::Run, "a"), false, true),
        ] {
            let defaults = found.mapping_defaults(&settings);
            assert_eq!((defaults.closed.is_some(), defaults.runs_script), (closes, is_run), "{settings:?}");
            assert_eq!(found.script(&settings).as_deref(), is_run.then_some("x"));
        }
        assert_eq!(reported(&scripts, Some(&found)).len(), 1);
    }

    #[test]
    fn a_default_header_is_told_where_it_is_written() {
        let headers = json!({ "add_response_headers": { "x-a": { "value": "%REQ(x-b)%" } } });
        let of_mappings = json!({ "httpmapping": headers });
        let rows =
            [(of_mappings, "defaults.httpmapping.add_response_headers"), (headers, "defaults.add_response_headers")];
        for (defaults, field) in rows {
            let written = module("a", "ambassador", "2026-01-01T00:00:00Z", json!({ "defaults": defaults }));
            let found = in_effect([&*written].into_iter(), &Settings::default());
            let told = reported(&written, found.as_ref());
            assert!(told.len() == 1 && told[0].starts_with(&format!("SES9102 spec.config.{field}: ")), "{told:?}");
        }
    }

    #[test]
    fn a_value_that_is_not_valid_is_told_once_and_is_as_if_it_was_not_there() {
        let config = json!({
            "retry_policy": { "retry_on": "sometimes" }, "cluster_request_timeout_ms": -1, "cors": { "origins": [] },
            "circuit_breakers": [{ "max_requests": -1 }], "load_balancer": { "policy": "ring_hash" }, "keepalive": { "probes": 0 },
            "defaults": { "httpmapping": { "add_request_headers": { "x y": { "value": "a" } } } }, "server_name": "a\r\nb",
            "gzip": { "memory_level": 10, "compression_level": "HARD" }, "buffer": { "max_request_bytes": 0 }, "max_request_headers_kb": 0,
            "forward_client_cert_details": "PERHAPS", "headers_with_underscores_action": "PERHAPS",
        });
        let written = module("a", "ambassador", "2026-01-01T00:00:00Z", config);
        let found = in_effect([&*written].into_iter(), &Settings::default()).unwrap();
        let fields: Vec<_> = reported(&written, Some(&found))
            .iter()
            .filter_map(|line| {
                line.strip_prefix("SES9004 spec.config.")?.split_once(':').map(|(field, _)| field.to_owned())
            })
            .collect();
        assert_eq!(
            fields,
            [
                "buffer.max_request_bytes",
                "circuit_breakers[0].max_requests",
                "cluster_request_timeout_ms",
                "cors.origins",
                "defaults.httpmapping.add_request_headers.x y",
                "forward_client_cert_details",
                "gzip.compression_level",
                "gzip.memory_level",
                "headers_with_underscores_action",
                "keepalive.probes",
                "load_balancer",
                "max_request_headers_kb",
                "retry_policy.retry_on",
                "server_name",
            ]
        );
        assert_eq!(found.mapping_defaults(&Settings::default()).timeout, None);
    }
}
