//! Keys of the Module that are not served, or whose place is elsewhere: each that is written is told.

use crate::{Problem, Problems};
use kinds::{
    Checked,
    emissary::module::{ModuleSettings, filters::BuiltInMapping},
};
use model::Code;

/// Tells them.
pub fn report(written: &ModuleSettings, problems: &mut Problems<'_>) {
    let mut elsewhere = |key: &str, is_written: bool, why: &str| {
        if is_written {
            problems.add(Problem::new(Code::ModuleKeyIgnored, key, why));
        }
    };
    elsewhere("admin_port", is_set(&written.admin_port), "the port of Envoy's admin pages is a setting of Sesame");
    elsewhere("regex_max_size", is_set(&written.regex_max_size), "Sesame has a limit of its own for patterns");
    let case = "Envoy has no such setting; use proper_case";
    elsewhere("header_case_overrides", is_set(&written.header_case_overrides), case);
    let overrides = "error_response_overrides is not supported, as in Emissary 4";
    elsewhere("error_response_overrides", is_set(&written.error_response_overrides), overrides);
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
}

/// Whether a key is written, readable or not.
fn is_set<T>(value: &Checked<Option<T>>) -> bool {
    value.ok().is_none_or(Option::is_some)
}
