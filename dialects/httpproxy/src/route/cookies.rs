//! What is changed about the cookies that backends set.

use crate::Rejection;
use kinds::{
    Checked,
    http_proxy::route::{CookieRewritePolicy, CookieValue as Written},
};
use model::{
    Code, FieldPath,
    route::{
        CookieRewrite,
        cookies::{CookieError, CookieName, CookieValue, SameSite},
    },
};
use std::collections::{BTreeMap, BTreeSet};

/// How many cookies a route or a service may change: what a service does not say is copied from its route.
const MOST: usize = 100;

/// Reads the list of a route or a service.
pub(super) fn policies(
    list: &Checked<Option<Box<[CookieRewritePolicy]>>>,
    field: &FieldPath,
) -> Result<Vec<CookieRewrite>, Rejection> {
    let field = field.field("cookieRewritePolicies");
    let count = list.get()?.as_deref().map_or(0, <[_]>::len);
    if count > MOST {
        let why = format!("must have at most {MOST} cookies, not {count}");
        return Err(Rejection::new(Code::ProxyCookies, field, why));
    }
    let mut seen = BTreeSet::new();
    let mut cookies = Vec::new();
    for (index, policy) in list.get()?.iter().flatten().enumerate() {
        let cookie = one(policy, &field.index(index))?;
        if !seen.insert(cookie.name.clone()) {
            let why = format!("cookie `{}` is listed more than once", cookie.name.as_str());
            return Err(Rejection::new(Code::ProxyCookies, field.index(index).field("name"), why));
        }
        cookies.push(cookie);
    }
    cookies.sort();
    Ok(cookies)
}

fn one(policy: &CookieRewritePolicy, field: &FieldPath) -> Result<CookieRewrite, Rejection> {
    let reject = |name: &str, why: String| Rejection::new(Code::ProxyCookies, field.field(name), why);
    let value = |name: &str, written: &Option<Written>, read: fn(&str) -> Result<CookieValue, CookieError>| {
        let read = written.as_ref().map(|written| read(&written.value));
        read.transpose().map_err(|error| reject(name, error.to_string()))
    };
    let same_site = policy.same_site.as_deref().filter(|word| !word.is_empty());
    let same_site = same_site.map(|word| {
        let known = SameSite::parse(word);
        known.ok_or_else(|| reject("sameSite", "must be Strict, Lax or None".to_owned()))
    });
    let cookie = CookieRewrite {
        name: CookieName::parse(&policy.name).map_err(|error| reject("name", error.to_string()))?,
        path: value("pathRewrite", &policy.path_rewrite, CookieValue::path)?,
        domain: value("domainRewrite", &policy.domain_rewrite, CookieValue::domain)?,
        secure: policy.secure,
        same_site: same_site.transpose()?,
    };
    let CookieRewrite { name: _, path, domain, secure, same_site } = &cookie;
    if path.is_none() && domain.is_none() && secure.is_none() && same_site.is_none() {
        let why = format!("no attribute is set for cookie `{}`", cookie.name.as_str());
        return Err(Rejection::new(Code::ProxyCookies, field.clone(), why));
    }
    Ok(cookie)
}

/// What holds for a service: its own word, and the route's for what it does not say. Nothing where it says nothing.
pub(super) fn of_service(own: Vec<CookieRewrite>, route: &[CookieRewrite]) -> Vec<CookieRewrite> {
    if own.is_empty() {
        return own;
    }
    let mut all: BTreeMap<_, _> = route.iter().map(|cookie| (cookie.name.clone(), cookie.clone())).collect();
    for cookie in own {
        let cookie = match all.get(&cookie.name) {
            Some(other) => cookie.over(other),
            None => cookie,
        };
        all.insert(cookie.name.clone(), cookie);
    }
    let mut all: Vec<CookieRewrite> = all.into_values().collect();
    all.sort();
    all
}
