//! A redirect: requests are sent to the host that `service` names.

use super::{Work, service};
use crate::{EmissaryView, Problem};
use kinds::emissary::mapping::{MappingSpec, RegexRewrite as Written};
use model::{
    Code, Host, Regex,
    regex::RegexRewrite,
    route::{PathReplacement, PathRewrite, Redirect, Scheme},
};

/// Reads the redirect; nothing, and a verdict, where it cannot be made.
pub(super) fn read(work: &mut Work<'_, '_, impl EmissaryView>) -> Option<Redirect> {
    let MappingSpec { path_redirect, prefix_redirect, regex_redirect, redirect_response_code, .. } = &work.object.spec;
    let whole = work.problems.optional("path_redirect", path_redirect).filter(|text| !text.is_empty());
    let prefix = work.problems.optional("prefix_redirect", prefix_redirect).filter(|text| !text.is_empty());
    let regex = work.problems.optional("regex_redirect", regex_redirect);
    let set = [
        ("path_redirect", whole.is_some()),
        ("prefix_redirect", prefix.is_some()),
        ("regex_redirect", regex.is_some()),
    ];
    let mut set = set.into_iter().filter(|(_, is_set)| *is_set);
    let first = set.next();
    for (field, _) in set {
        let used = first.map_or("", |(used, _)| used);
        let why = format!("Cannot specify both {used} and {field}. Using {used} and ignoring {field}.");
        work.problems.no_effect(field, &why);
    }
    let path = match (whole, prefix, regex) {
        (Some(text), ..) => Some(PathRewrite::Whole(path(work, "path_redirect", text)?)),
        (None, Some(text), _) => Some(PathRewrite::Prefix(path(work, "prefix_redirect", text)?)),
        (None, None, Some(written)) => Some(PathRewrite::Regex(path_pattern(work, written)?)),
        (None, None, None) => None,
    };
    let status = work.problems.optional("redirect_response_code", redirect_response_code).copied().unwrap_or(301);
    let status = u16::try_from(status).ok().filter(|status| [301, 302, 303, 307, 308].contains(status));
    let status = work.problems.parsed(status.ok_or_else(|| {
        let why = "must be one of 301, 302, 303, 307, 308";
        Problem::new(Code::MappingRewrite, "redirect_response_code", why)
    }));
    let written = service::written(work)?;
    let found = service::redirect_host(&written).map_err(|why| Problem::new(Code::MappingService, "service", why));
    let Host::Exact(host) = work.problems.parsed(found)? else { return None };
    let scheme = written.has_scheme.then_some(if written.is_https { Scheme::Https } else { Scheme::Http });
    Some(Redirect { scheme, host: Some(host), port: written.port, path, status: status? })
}

/// Where a redirect leads to. Without a leading `/` the text would become part of the host.
fn path(work: &mut Work<'_, '_, impl EmissaryView>, field: &str, text: &str) -> Option<PathReplacement> {
    let found = PathReplacement::parse_absolute(text);
    work.problems.parsed(found.map_err(|error| Problem::new(Code::MappingRewrite, field, error.to_string())))
}

/// A pattern of the path that a redirect leads to. Here, too, the path must not become part of the host.
fn path_pattern(work: &mut Work<'_, '_, impl EmissaryView>, written: &Written) -> Option<RegexRewrite> {
    let rewrite = pattern(work, "regex_redirect", written)?;
    let found = if rewrite.keeps_leading_slash() {
        Ok(rewrite)
    } else {
        let why =
            format!("`{}` must begin with `/`: the pattern may match the beginning of a path", rewrite.substitution());
        Err(Problem::new(Code::MappingRewrite, "regex_redirect.substitution", why))
    };
    work.problems.parsed(found)
}

/// A pattern and what replaces its matches.
pub(super) fn pattern(
    work: &mut Work<'_, '_, impl EmissaryView>,
    field: &str,
    written: &Written,
) -> Option<RegexRewrite> {
    let reject = |name: &str, why: String| Problem::new(Code::MappingRewrite, &format!("{field}.{name}"), why);
    let regex = Regex::parse(&written.pattern).map_err(|error| reject("pattern", error.to_string()));
    let found = regex.and_then(|regex| {
        RegexRewrite::new(regex, &written.substitution).map_err(|error| reject("substitution", error.to_string()))
    });
    work.problems.parsed(found)
}
