//! `envoy_log_type`, `envoy_log_format` and `envoy_log_path` of the Module: the access log of Listeners with ports of their own.
//!
//! One operator that Envoy does not know, and it refuses the whole listener: a form is checked before. The file is one of the proxy's
//! streams, since a listener whose file cannot be opened is refused, too, and a Module is not the operator of the machine.

use super::http::invalid;
use crate::Problems;
use kinds::emissary::module::{ModuleSettings, filters::AccessLogType};
use model::listener::{AccessLogFormat, access_log_format::check};
use std::sync::Arc;

/// The most fields of JSON.
const MOST_FIELDS: usize = 100;

/// The most bytes of a form.
const MOST_BYTES: usize = 8 * 1024;

/// The key for the type of the log.
const TYPE: &str = "envoy_log_type";

/// The key for its form.
const FORM: &str = "envoy_log_format";

/// The form, and the key that says it; that of the fleet where nothing valid is said.
pub fn format(written: &ModuleSettings, problems: &mut Problems<'_>) -> Option<(&'static str, AccessLogFormat)> {
    let word = problems.optional(TYPE, &written.envoy_log_type);
    let format = problems.optional(FORM, &written.envoy_log_format);
    match word {
        None | Some(AccessLogType::Text) => {
            let found = format?.as_str().ok_or_else(|| invalid(FORM, "must be text"));
            let text = problems.parsed(found)?;
            problems
                .parsed(line(text).map_err(|why| invalid(FORM, why)))
                .map(|line| (FORM, AccessLogFormat::Text(line)))
        }
        Some(AccessLogType::Json | AccessLogType::TypedJson) => {
            let Some(format) = format else { return Some((TYPE, AccessLogFormat::Json(Vec::new()))) };
            let found = format.as_object().ok_or_else(|| invalid(FORM, "must be a map of fields"));
            let fields = problems.parsed(found)?;
            if fields.len() > MOST_FIELDS {
                problems.refuse(invalid(FORM, format!("has more than {MOST_FIELDS} fields")));
                return None;
            }
            let fields = fields.iter().map(|(name, value)| field(name, value.as_str()));
            let fields: Result<Vec<Arc<str>>, String> = fields.collect();
            problems
                .parsed(fields.map_err(|why| invalid(FORM, why)))
                .map(|fields| (FORM, AccessLogFormat::Json(fields)))
        }
        Some(AccessLogType::Unknown(word)) => {
            let why = format!("must be text, json or typed_json, not `{}`", word.escape_debug());
            problems.refuse(invalid(TYPE, why));
            None
        }
    }
}

/// A line, which ends where the form does.
fn line(text: &str) -> Result<Arc<str>, String> {
    if text.is_empty() || text.len() > MOST_BYTES {
        return Err(format!("must have from 1 to {MOST_BYTES} bytes"));
    }
    check(text).map_err(|error| error.to_string())?;
    Ok(format!("{}\n", text.trim_end_matches('\n')).into())
}

/// A field of JSON.
fn field(name: &str, form: Option<&str>) -> Result<Arc<str>, String> {
    let Some(form) = form else { return Err(format!("`{}` must be text", name.escape_debug())) };
    if name.is_empty() || name.contains('=') || name.len() + form.len() > MOST_BYTES {
        return Err(format!("`{}` is not a valid field name", name.escape_debug()));
    }
    check(form).map_err(|error| format!("`{}`: {error}", name.escape_debug()))?;
    Ok(format!("{name}={form}").into())
}

/// The file.
pub fn path(written: &ModuleSettings, problems: &mut Problems<'_>) -> Option<Arc<str>> {
    let path = problems.optional("envoy_log_path", &written.envoy_log_path)?;
    let found = match &**path {
        "/dev/fd/1" | "/dev/stdout" => Ok("/dev/stdout".into()),
        "/dev/fd/2" | "/dev/stderr" => Ok("/dev/stderr".into()),
        "/dev/null" => Ok("/dev/null".into()),
        _ => Err(invalid("envoy_log_path", "must be /dev/stdout, /dev/stderr or /dev/null, or /dev/fd/1 or 2")),
    };
    problems.parsed(found)
}
