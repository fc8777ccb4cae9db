//! What is fetched by name, because something refers to it: who asks, and in which order it is fetched.
//!
//! In: what is wanted and what is not any more ([`FetchHandle`]). Out, from whoever fetches: an answer for each want, sooner or later.
//! Nothing here knows what is fetched: the contents of Secrets and ConfigMaps are ([`crate::cluster`]), and whatever else has a
//! name, somebody who pays for it, and a server that may refuse, be busy or never answer, can be. [`Schedule`] decides what is
//! fetched when, so that nobody's names hold up another's.

mod schedule;

use kinds::ObjectRef;
use parking_lot::RwLock;
use std::{collections::HashSet, hash::Hash, sync::Arc};
use tokio::sync::mpsc;

pub use schedule::{Limits, Outcome, Schedule};

/// What something is fetched by.
pub trait Key: Clone + Eq + Hash {
    /// Whose it is: what is fetched for one tenant waits for nothing that is fetched for another.
    fn tenant(&self) -> &Arc<str>;
}

impl Key for ObjectRef {
    fn tenant(&self) -> &Arc<str> {
        &self.namespace
    }
}

/// Asks for what is fetched by name. Clones ask the same one.
pub struct FetchHandle<K = ObjectRef> {
    wanted: Arc<RwLock<HashSet<K>>>,
    requests: mpsc::UnboundedSender<Request<K>>,
}

impl<K> Clone for FetchHandle<K> {
    fn clone(&self) -> Self {
        Self { wanted: self.wanted.clone(), requests: self.requests.clone() }
    }
}

/// What is asked of whoever fetches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<K> {
    /// It is wanted from now on.
    Want(K),
    /// It has changed.
    Refresh(K),
    /// It is not wanted any more.
    Forget(K),
}

/// The end of whoever fetches.
pub type Requests<K> = mpsc::UnboundedReceiver<Request<K>>;

/// A way to ask, and the end where it is heard.
pub fn wants<K>() -> (FetchHandle<K>, Requests<K>) {
    let (requests, receiver) = mpsc::unbounded_channel();
    (FetchHandle { wanted: Arc::default(), requests }, receiver)
}

impl<K: Key> FetchHandle<K> {
    /// Asks for something. The answer is what there is, or that there is nothing, or why that cannot be told; changes follow.
    pub fn want(&self, key: K) {
        self.wanted.write().insert(key.clone());
        self.send(Request::Want(key));
    }

    /// Does not want it any more.
    pub fn forget(&self, key: &K) {
        self.wanted.write().remove(key);
        self.send(Request::Forget(key.clone()));
    }

    /// It has come, changed or gone.
    pub(crate) fn refresh(&self, key: &K) {
        if self.wanted.read().contains(key) {
            self.send(Request::Refresh(key.clone()));
        }
    }

    fn send(&self, request: Request<K>) {
        // Without anybody who fetches there is nobody to answer, and soon nobody to ask.
        let _ended = self.requests.send(request);
    }
}
