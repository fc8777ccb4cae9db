//! How much text a route holds, about as much as a proxy is sent for it: what the limits of objects that unfold are
//! counted in. Parts that several routes share count for each, because each route is sent with all of its own.

use super::{
    Action, Conditions, Cors, Forward, HeaderChanges, HostCondition, HostRewrite, PathRewrite, Policy, ValueMatch,
};
use super::{AuthContext, Authorization, CookieRewrite, HashOf, IpFilter, LocalRateLimitPolicy, cors::AllowedOrigin};
use crate::{
    ClusterId,
    cluster::Backend,
    header::{HeaderFormat, MutableHeader},
};

/// What a backend or a range takes besides its text.
const ENTRY: usize = 32;

impl Conditions {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.headers.len() + self.query.len() + usize::from(self.host.is_some())
    }

    /// How much text they hold.
    pub fn bytes(&self) -> usize {
        let headers = self.headers.iter().map(|header| header.name.as_str().len() + header.value.bytes());
        let query = self.query.iter().map(|query| query.name.len() + query.value.bytes());
        headers.chain(query).sum::<usize>() + self.host.as_ref().map_or(0, HostCondition::bytes)
    }
}

impl Policy {
    /// How much text it holds.
    pub fn bytes(&self) -> usize {
        let Self {
            request_headers,
            response_headers,
            ip_filter,
            rejects_escaped_slashes: _,
            runs_script: _,
            local_rate_limit: limit,
            host_rate_limit: _,
            global_limit,
            cors,
            cookies,
            jwt,
            authorization,
        } = self;
        changes(request_headers)
            + changes(response_headers)
            + ip_filter.as_ref().map_or(0, |IpFilter { ranges, .. }| ranges.len() * ENTRY)
            + limit.as_ref().map_or(0, |LocalRateLimitPolicy { headers, .. }| set(headers))
            + global_limit.as_ref().map_or(0, |limit| limit.bytes())
            + cors.as_deref().map_or(0, cross_origin)
            + rewrites(cookies)
            + jwt.as_ref().map_or(0, |_| 2 * ENTRY)
            + asked(authorization)
    }
}

impl Action {
    /// How much text it holds.
    pub fn bytes(&self) -> usize {
        match self {
            Action::Forward(forward) => forwarded(forward),
            Action::Redirect(redirect) => {
                let path = redirect.path.as_ref().map_or(0, rewritten);
                path + redirect.host.as_ref().map_or(0, |host| host.as_str().len())
            }
            Action::DirectResponse(respond) => respond.body.len(),
        }
    }
}

fn forwarded(forward: &Forward) -> usize {
    let Forward { clusters, mirrors, retry, rewrite, host, hash, internal_redirect, upgrades, .. } = forward;
    let clusters = clusters.iter().map(|share| {
        cluster(&share.cluster)
            + changes(&share.request_headers)
            + changes(&share.response_headers)
            + share.host.as_ref().map_or(0, |host| host.as_str().len())
            + rewrites(&share.cookies)
    });
    let hash = hash.iter().map(|hash| match &hash.of {
        HashOf::Cookie(name) | HashOf::Query(name) => ENTRY + name.len(),
        HashOf::LastingCookie { name, path, .. } => {
            ENTRY + name.len() + path.as_ref().map_or(0, |it| it.as_str().len())
        }
        HashOf::Header(name) => ENTRY + name.as_str().len(),
        HashOf::SourceIp => ENTRY,
    });
    let host = host.as_ref().map_or(0, |host| match host {
        HostRewrite::Literal(text) => text.as_str().len(),
        HostRewrite::Header(name) => name.as_str().len(),
    });
    clusters.sum::<usize>()
        + mirrors.iter().map(|mirror| cluster(&mirror.cluster)).sum::<usize>()
        + hash.sum::<usize>()
        + upgrades.iter().map(|upgrade| ENTRY + upgrade.as_str().len()).sum::<usize>()
        + host
        + rewrite.as_ref().map_or(0, rewritten)
        + retry.as_ref().map_or(0, |retry| retry.status_codes.len() * size_of::<u32>())
        + internal_redirect.as_ref().map_or(0, |redirect| redirect.statuses.len() * size_of::<u32>())
}

fn rewritten(rewrite: &PathRewrite) -> usize {
    match rewrite {
        PathRewrite::Whole(path) | PathRewrite::Prefix(path) => path.as_str().len(),
        PathRewrite::Below { matched, path } => matched.as_str().len() + path.as_str().len(),
        PathRewrite::Regex(regex) => regex.pattern().as_str().len() + regex.substitution().len(),
    }
}

fn cluster(id: &ClusterId) -> usize {
    match &id.backend {
        Backend::Service(backend) => ENTRY + backend.namespace.len() + backend.service.len(),
        Backend::Services(several) => several.iter().map(|one| ENTRY + one.namespace.len() + one.service.len()).sum(),
        Backend::Extension(object) => ENTRY + object.namespace.len() + object.name.len(),
        Backend::Outside(outside) => ENTRY + outside.host().len(),
    }
}

impl ValueMatch {
    /// How much text it holds.
    pub fn bytes(&self) -> usize {
        match self {
            ValueMatch::Present => 0,
            ValueMatch::Text { text, .. } => text.as_str().len(),
        }
    }
}

fn set(headers: &[(MutableHeader, HeaderFormat)]) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.as_str().len()).sum()
}

fn changes(changes: &HeaderChanges) -> usize {
    set(&changes.set) + set(&changes.add) + changes.remove.iter().map(|name| name.as_str().len()).sum::<usize>()
}

fn cross_origin(cors: &Cors) -> usize {
    let origins = cors.origins.iter().map(|origin| match origin {
        AllowedOrigin::Any => ENTRY,
        AllowedOrigin::Matching(text) => ENTRY + text.as_str().len(),
    });
    let words = cors.methods.iter().chain(&cors.headers).chain(&cors.exposed).map(|word| word.as_str().len());
    origins.chain(words).sum()
}

fn asked(authorization: &Authorization) -> usize {
    let words = |context: &AuthContext| context.iter().map(|(key, value)| ENTRY + key.len() + value.len()).sum();
    match authorization {
        Authorization::Unset | Authorization::Disabled => 0,
        Authorization::AskDefault(context) | Authorization::AskFleet(context) => words(context),
        // Who is asked is written out for each route.
        Authorization::Ask(check) => {
            let server = check.server.extension.as_ref().map_or(0, |extension| cluster(&extension.cluster));
            4 * ENTRY + server + words(&check.context)
        }
    }
}

fn rewrites(cookies: &[CookieRewrite]) -> usize {
    let one = |cookie: &CookieRewrite| {
        let CookieRewrite { name, path, domain, .. } = cookie;
        let values = path.iter().chain(domain).map(|value| value.as_str().len());
        ENTRY + name.as_str().len() + values.sum::<usize>()
    };
    cookies.iter().map(one).sum()
}
