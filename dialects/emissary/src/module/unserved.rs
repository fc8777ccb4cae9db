//! Keys of the Module that are not served, or whose place is elsewhere: each that is written is told.

use crate::{Problem, Problems, Settings};
use kinds::{
    Checked,
    emissary::module::{ModuleSettings, filters::BuiltInMapping},
};
use model::Code;

/// Tells them.
pub fn tell(written: &ModuleSettings, settings: &Settings, problems: &mut Problems<'_>) {
    let mut elsewhere = |key: &str, is_written: bool, why: &str| {
        if is_written {
            problems.tell(Problem::new(Code::EmissaryDeadKey, key, why));
        }
    };
    let log = "the access log is a setting of Sesame (accesslog-format)";
    elsewhere("admin_port", is_set(&written.admin_port), "the port of Envoy's admin pages is a setting of Sesame");
    elsewhere("envoy_log_type", is_set(&written.envoy_log_type), log);
    elsewhere("envoy_log_path", is_set(&written.envoy_log_path), log);
    elsewhere("envoy_log_format", is_set(&written.envoy_log_format), log);
    elsewhere("runtime_flags", is_set(&written.runtime_flags), "runtime values of proxies are settings of Sesame");
    elsewhere("regex_max_size", is_set(&written.regex_max_size), "Sesame has a limit of its own for patterns");
    let case = "Envoy has no such setting; use proper_case";
    elsewhere("header_case_overrides", is_set(&written.header_case_overrides), case);
    let overrides = "error_response_overrides is not supported, as in Emissary 4";
    elsewhere("error_response_overrides", is_set(&written.error_response_overrides), overrides);
    let statistics = "statistics of gRPC are kept of all methods together";
    elsewhere("grpc_stats", is_set(&written.grpc_stats), statistics);
    let is_false = |value: &Checked<Option<bool>>| value.ok().is_none_or(|value| *value == Some(false));
    let address = "a client could write its address itself: it is that of the connection; use `l7Depth` of a Listener";
    elsewhere("use_remote_address", is_false(&written.use_remote_address), address);
    let probes = [
        ("diagnostics", &written.diagnostics),
        ("liveness_probe", &written.liveness_probe),
        ("readiness_probe", &written.readiness_probe),
    ];
    let is_on = |probe: &Checked<Option<Box<BuiltInMapping>>>| match probe.ok() {
        None => true,
        Some(None) => false,
        Some(Some(probe)) => probe.enabled.unwrap_or(true),
    };
    for (key, probe) in probes {
        elsewhere(key, is_on(probe), "there is no Mapping to it; probes of proxies have a port of their own");
    }
    if is_set(&written.lua_scripts) {
        let why = match settings.ignore_scripts {
            true => "scripts are not run",
            false => "scripts are not run; all Mappings answer 503, unless --emissary-lua=ignore",
        };
        problems.tell(Problem::new(Code::EmissaryNotServed, "lua_scripts", why));
    }
}

/// Whether a key is written, readable or not.
fn is_set<T>(value: &Checked<Option<T>>) -> bool {
    value.ok().is_none_or(Option::is_some)
}
