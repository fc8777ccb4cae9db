//! `runtime_flags` of the Module: the few runtime values of proxies that it may set. The operator's own win. They hold for everybody's
//! hosts, so they are taken from a Module in Sesame's namespace alone, unless namespaces trust each other.

use super::http::invalid;
use crate::{Problem, Problems, Settings};
use kinds::emissary::module::ModuleSettings;
use model::{Code, ObjectRef};
use std::{collections::BTreeMap, sync::Arc};

/// The key.
const KEY: &str = "runtime_flags";

/// Values that are numbers, each with the least.
const NUMBERS: [(&str, u64); 3] = [
    ("http.max_requests_per_io_cycle", 1),
    ("overload.premature_reset_min_stream_lifetime_seconds", 0),
    ("overload.premature_reset_total_stream_count", 1),
];

/// A value that is true or false.
const FLAG: &str = "envoy.restart_features.send_goaway_for_premature_rst_streams";

/// Reads them; what is not valid, or has no effect, is told.
pub fn read(
    module: &ObjectRef,
    written: &ModuleSettings,
    settings: &Settings,
    problems: &mut Problems<'_>,
) -> BTreeMap<Arc<str>, Arc<str>> {
    let mut values = BTreeMap::new();
    let Some(flags) = problems.optional(KEY, &written.runtime_flags) else { return values };
    if !settings.trusts(module) {
        let why = format!("runtime values of all proxies are set from namespace {} alone", settings.namespace);
        problems.add(Problem::new(Code::EmissaryNotServed, KEY, why));
        return values;
    }
    let Some(flags) = flags.as_object() else {
        problems.refuse(invalid(KEY, "must be a map of values"));
        return values;
    };
    for (name, value) in flags {
        let number = NUMBERS.iter().find(|(known, _)| known == name);
        let is_good = match number {
            Some((_, least)) => value.as_u64().is_some_and(|value| (*least..=u64::from(u32::MAX)).contains(&value)),
            None => name == FLAG && value.is_boolean(),
        };
        if settings.runtime_keys.contains(&**name) {
            let why = format!("the operator has set `{name}`");
            problems.add(Problem::new(Code::EmissaryListenerSettings, KEY, why));
        } else if is_good {
            values.insert(name.as_str().into(), value.to_string().into());
        } else if number.is_some() || name == FLAG {
            problems.refuse(invalid(KEY, format!("`{name}` may not be {}", shortened(&value.to_string()))));
        } else {
            problems.refuse(invalid(KEY, format!("`{}` may not be set here", shortened(name))));
        }
    }
    values
}

fn shortened(text: &str) -> String {
    text.chars().take(80).collect::<String>().escape_debug().to_string()
}
