//! A path of a rule: its type and its text.

use crate::Context;
use kinds::ingress::{HttpPath, PathType};
use model::{
    Code, FieldPath, Regex, Verdict,
    route::{Path, PathMatch},
};

/// What makes a path of no particular type a regular expression, as Contour decides it, and with the characters that
/// cannot stand in a path but are common in patterns.
const REGEX: &[char] = &['^', '+', '*', '[', ']', '%', '$', '|', '\\', '{', '}'];

/// The match; nothing, and a verdict, where the path cannot be matched.
pub(crate) fn path_match(context: &mut Context<'_>, path: &HttpPath, field: &FieldPath) -> Option<PathMatch> {
    let text = match path.path.as_deref() {
        None | Some("") => "/",
        Some(text) => text,
    };
    let found = match &path.path_type {
        Some(PathType::Exact) => plain(text).map(PathMatch::Exact),
        Some(PathType::Prefix) => plain(text).map(|path| PathMatch::below(&path)),
        None | Some(PathType::ImplementationSpecific) if text.contains(REGEX) => {
            Regex::parse(text).map(PathMatch::Regex).map_err(|error| (Code::IngressRegex, "path", error.to_string()))
        }
        None | Some(PathType::ImplementationSpecific) => plain(text).map(PathMatch::Prefix),
        Some(PathType::Unknown(word)) => Err((Code::PathType, "pathType", format!("`{word}` is not a path type"))),
    };
    found
        .map_err(|(code, name, why)| {
            context.verdicts.push(Verdict::new(code, context.subject.at(field.field(name)), why))
        })
        .ok()
}

fn plain(text: &str) -> Result<Path, (Code, &'static str, String)> {
    Path::parse(text).map_err(|error| (Code::IngressPath, "path", error.to_string()))
}
