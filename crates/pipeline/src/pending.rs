//! What stands in for the parts of a translation that depend on a Secret that has not been read yet.
//!
//! In: the translation as it would be without that Secret, which names the objects that depend on it, and the last translation that depended
//! on nothing unknown, if there was one. Out: the translation that is served meanwhile. It is never the translation without the Secret, which
//! would close what is open, or open what is to be protected.
//!
//! A root decides about the host and keeps all of it; nothing, where there was nothing before. What it no longer asks for it
//! gives up at once: a host that it named before may have another owner.
//!
//! An object that a root includes keeps its own routes only, so that it cannot hold up the others. It keeps them where all
//! that others say about them is what it was: the hosts and their listeners, the policies of the host, and the places that
//! the includes on the way to it give it. Otherwise the routes that it has now answer 503, and so do those of a new object:
//! neither is a stricter parent disobeyed, nor does a wider route take the requests.

use crate::translations::TranslationRow;
use model::{
    Host, ListenerId, ObjectRef, Route, Translation,
    route::{Action, DirectResponse},
};
use std::sync::Arc;

/// The hosts that a translation asks for, sorted, if it is pending as a whole.
pub fn claimed(translation: &Translation) -> Vec<Host> {
    if !translation.is_pending(&translation.subject) {
        return Vec::new();
    }
    let named = translation.hosts.iter().map(|(_, host)| host).chain(translation.tls.iter().map(|piece| &piece.host));
    let mut claimed: Vec<_> = named.cloned().collect();
    claimed.sort_unstable();
    claimed.dedup();
    claimed
}

/// The translation without what its pending objects bring: the routes of those that it includes answer 503.
pub fn without(mut translation: Translation) -> Translation {
    if translation.is_pending(&translation.subject) {
        let Translation { subject, includes, is_child, pending, .. } = translation;
        return Translation { includes, is_child, pending, ..Translation::empty(subject) };
    }
    let pending = &translation.pending;
    let is_pending = |object: &ObjectRef| pending.binary_search(object).is_ok();
    for piece in translation.routes.iter_mut().filter(|piece| is_pending(&piece.route.origin.object)) {
        piece.route = unavailable(&piece.route);
    }
    for route in translation.shared.iter_mut().flat_map(|shared| &mut shared.routes) {
        if is_pending(&route.origin.object) {
            *route = unavailable(route);
        }
    }
    translation.verdicts.retain(|verdict| !is_pending(&verdict.origin.object));
    translation
}

/// The same requests answer 503.
fn unavailable(route: &Route) -> Arc<Route> {
    let (action, policy) = (Action::DirectResponse(DirectResponse::unavailable()), Default::default());
    Arc::new(Route { action, policy, ..route.clone() })
}

/// The translation that was [computed](without), with what its pending objects brought before. It refers to what both refer to.
pub fn kept(good: &TranslationRow, computed: TranslationRow) -> TranslationRow {
    let TranslationRow { mut translation, mut secrets, claimed, .. } = computed;
    if translation.is_pending(&translation.subject) {
        let Translation { includes, pending, .. } = translation;
        translation = good.translation.clone();
        let is_claimed = |host: &Host| claimed.binary_search(host).is_ok();
        translation.hosts.retain(|(_, host)| is_claimed(host));
        translation.routes.retain(|piece| is_claimed(&piece.host));
        translation.tls.retain(|piece| is_claimed(&piece.host));
        translation.selectors = translation.selectors.into_iter().filter(|it| is_claimed(&it.host)).collect();
        translation.includes = merged(&translation.includes, includes);
        translation.pending = pending;
    } else if is_same_host(good, &translation) {
        let mut kept = translation.pending.clone();
        kept.retain(|object| translation.inclusions_of(object) == good.inclusions_of(object));
        let is_kept = |object: &ObjectRef| kept.binary_search(object).is_ok();
        translation.routes.retain(|piece| !is_kept(&piece.route.origin.object));
        translation.routes.extend(good.routes.iter().filter(|piece| is_kept(&piece.route.origin.object)).cloned());
    }
    secrets = merged(&good.secrets, secrets);
    TranslationRow { claimed, ..TranslationRow::new(translation.sorted(), secrets) }
}

/// Whether two translations of a root say the same for all routes. A certificate is none of their business; whether there is TLS is.
fn is_same_host(one: &Translation, other: &Translation) -> bool {
    let tls = |translation: &Translation| -> Vec<(ListenerId, Host)> {
        translation.tls.iter().map(|piece| (piece.listener.clone(), piece.host.clone())).collect()
    };
    one.hosts == other.hosts && one.policy == other.policy && tls(one) == tls(other)
}

fn merged<T: Ord + Clone>(some: &[T], mut more: Vec<T>) -> Vec<T> {
    more.extend(some.iter().cloned());
    more.sort_unstable();
    more.dedup();
    more
}
