//! `/debug/host?name=…`: the objects that serve a host, verdicts on them and on others that name it, the proxies that have it.
//! `/debug/object?kind=…&namespace=…&name=…`: the same from the side of an object.

use super::{
    Query, Views, page,
    served::{self, Site, object_of},
    verdicts::{self, View},
};
use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use model::{ObjectRef, Verdict};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};
use tokio::sync::Semaphore;
use xds::Fleet;

/// How many searches may be under way at once.
static SEARCHES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(2)));
/// How many virtual hosts, objects and verdicts are shown.
const MOST: usize = 200;

#[derive(Serialize)]
struct HostPage {
    host: String,
    /// The virtual host that its requests find, at each listener of each fleet.
    served: Vec<Site>,
    owner_count: usize,
    /// The first of the objects that all routes come from, whether these are shown or not.
    owners: Vec<String>,
    /// What is said about these objects.
    verdicts: Vec<View>,
    /// What is said about other objects and names the host.
    others: Vec<View>,
}

#[derive(Serialize)]
struct ObjectPage {
    object: String,
    /// The virtual hosts that have routes of it, with these routes.
    served: Vec<Site>,
    verdicts: Vec<View>,
}

pub(super) async fn host(State(views): State<Arc<Views>>, uri: Uri, headers: HeaderMap) -> Response {
    let query = Query::from(&uri);
    let Some(name) = query.given("name").map(str::to_ascii_lowercase) else {
        return missing("/debug/host?name=www.example.com");
    };
    search(headers, move || {
        let fleets = views.server.all_acks();
        let covering = served::find(&fleets, |domain| covers(domain, &name), |_| true);
        let served = most_specific(covering);
        let owners: BTreeSet<&str> = served.iter().flat_map(|site| &*site.owners).map(String::as_str).collect();
        let all = views.board.0.verdicts.load_full();
        let is_owner = |object: &ObjectRef| owners.contains(&*object.to_string());
        let of_owners = all.iter().filter(|(object, _)| is_owner(object)).flat_map(|(_, verdicts)| verdicts.iter());
        let verdicts = shown(of_owners);
        let of_others = all.iter().filter(|(object, _)| !is_owner(object)).flat_map(|(_, verdicts)| verdicts.iter());
        let others = shown(of_others.filter(|verdict| names(&verdict.message, &name)));
        let (owner_count, owners) = (owners.len(), owners.into_iter().take(MOST).map(str::to_owned).collect());
        HostPage { host: name, served, owner_count, owners, verdicts, others }
    })
    .await
}

pub(super) async fn object(State(views): State<Arc<Views>>, uri: Uri, headers: HeaderMap) -> Response {
    let query = Query::from(&uri);
    let (Some(kind), Some(name)) = (query.given("kind"), query.given("name")) else {
        return missing("/debug/object?kind=HTTPProxy&namespace=shop&name=web");
    };
    let object = match query.get("namespace").unwrap_or_default() {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    };
    search(headers, move || {
        let is_own = |route: &served::RouteView| object_of(&route.route).as_deref() == Some(&*object);
        let mut served = served::find(&views.server.all_acks(), |_| true, is_own);
        served.retain(|site| !site.routes.is_empty());
        served.truncate(MOST);
        let all = views.board.0.verdicts.load_full();
        let own = all.iter().filter(|(other, _)| other.to_string() == object);
        let verdicts = shown(own.flat_map(|(_, verdicts)| verdicts.iter()));
        ObjectPage { object, served, verdicts }
    })
    .await
}

/// Makes a page on a thread of its own, as JSON or for a browser.
async fn search<P: Serialize + Send + 'static>(
    headers: HeaderMap,
    make: impl FnOnce() -> P + Send + 'static,
) -> Response {
    let Ok(permit) = SEARCHES.clone().try_acquire_owned() else {
        return (StatusCode::TOO_MANY_REQUESTS, "other searches are under way; try again\n").into_response();
    };
    let made = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        make()
    });
    match made.await {
        Ok(made) => page::answer(&headers, &made),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

fn missing(example: &str) -> Response {
    (StatusCode::BAD_REQUEST, format!("query parameters are missing; an example: {example}\n")).into_response()
}

fn shown<'a>(verdicts: impl Iterator<Item = &'a Verdict>) -> Vec<View> {
    verdicts.take(MOST).map(verdicts::view).collect()
}

/// Whether requests for the host may find a virtual host of this domain.
fn covers(domain: &str, host: &str) -> bool {
    match domain.strip_prefix('*') {
        None => domain == host,
        Some("") => true,
        Some(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
    }
}

/// Of the virtual hosts that cover a host the one with the longest domain, at each listener.
fn most_specific(covering: Vec<Site>) -> Vec<Site> {
    let rank = |site: &Site| (!site.host.starts_with('*'), site.host.len());
    let mut best: BTreeMap<(Fleet, String), Site> = BTreeMap::new();
    for site in covering {
        let place = (site.fleet.clone(), site.listener.clone());
        if best.get(&place).is_none_or(|other| rank(other) < rank(&site)) {
            best.insert(place, site);
        }
    }
    best.into_values().collect()
}

/// Whether a text names a host, and not one of which it is a part.
fn names(text: &str, host: &str) -> bool {
    let is_part = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '_' | '*');
    text.match_indices(host).any(|(at, found)| {
        let (before, after) = (text[..at].chars().next_back(), &text[at + found.len()..]);
        // A dot may be the end of the sentence.
        let mut after = after.strip_prefix('.').unwrap_or(after).chars();
        !before.is_some_and(is_part) && !after.next().is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_named_as_a_whole() {
        assert!(names("the host `a.example.com` is taken", "a.example.com"));
        assert!(names("taken is a.example.com.", "a.example.com"));
        assert!(!names("the host aa.example.com is taken", "a.example.com"));
        assert!(!names("the host a.example.common is taken", "a.example.com"));
        assert!(!names("the host a.example.com.au is taken", "a.example.com"));
        assert!(names("taken is a.example.com. Choose another", "a.example.com"));
    }

    #[test]
    fn domains_cover_what_envoy_finds_in_them() {
        for (domain, is_covered) in [
            ("a.example.com", true),
            ("*.example.com", true),
            ("*", true),
            ("b.example.com", false),
            ("*.example.org", false),
        ] {
            assert_eq!(covers(domain, "a.example.com"), is_covered, "{domain}");
        }
        assert!(!covers("*.example.com", ".example.com"));
    }
}
