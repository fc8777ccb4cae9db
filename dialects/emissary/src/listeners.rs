//! All Listeners of an instance, as Hosts need them: the listener that each is, which Hosts it binds, and how it takes their requests.
//!
//! In: the Listeners. Out: one [`BoundListener`] for each that can be served, in the order of precedence, and for the others the
//! reason. Of two on one port, of TCP or of UDP, the older is served. At most [`MOST`] are: every Host has a name on each Listener that binds it.

use crate::{Settings, listener, precedence};
use kinds::{
    Meta,
    emissary::{self, listener::SecurityModel},
    kind,
};
use model::{
    ListenerId, ObjectRef,
    listener::{HttpOverrides, ListenerClaim},
    shared_routes::{Exposure, InsecureAction, Labels},
};
use std::{collections::BTreeMap, sync::Arc};

/// The most Listeners that are served.
pub const MOST: usize = 64;

/// All Listeners of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listeners {
    /// Those that are served, by precedence.
    pub served: Vec<BoundListener>,
    /// Why the others are not, by object.
    pub refused: BTreeMap<ObjectRef, Box<str>>,
}

/// A Listener that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundListener {
    /// The object.
    pub object: ObjectRef,
    /// The listener that it is.
    pub id: ListenerId,
    /// What it asks for, if it is not one of the shared fleet's own.
    pub claim: Option<ListenerClaim>,
    /// What it asks for the plaintext connections of its port, if it is for HTTP over TLS.
    pub plaintext: Option<ListenerClaim>,
    /// Its port.
    pub port: u16,
    /// Whether its connections are TLS.
    pub is_tls: bool,
    /// Whether requests are looked at: otherwise it is for TCPMappings alone.
    pub is_http: bool,
    /// Whether it is for HTTP/3, on a port of UDP.
    pub is_quic: bool,
    /// Which requests are secure.
    pub security: Security,
    /// Whether proxies in front are believed about the scheme.
    pub trusts_forwarded: bool,
    /// The Hosts that it binds.
    pub binding: Binding,
}

/// Which requests of a Listener are secure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// Those that came over HTTPS, as far as that is known.
    Forwarded,
    /// All.
    Secure,
    /// None.
    Insecure,
}

impl Security {
    /// The model of a Listener; nothing for an unknown word.
    pub fn of(model: &SecurityModel) -> Option<Self> {
        match model {
            SecurityModel::Xfp => Some(Self::Forwarded),
            SecurityModel::Secure => Some(Self::Secure),
            SecurityModel::Insecure => Some(Self::Insecure),
            SecurityModel::Unknown(_) => None,
        }
    }
}

/// Which Hosts a Listener binds: those that fulfil both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    /// Those of this namespace only.
    pub namespace: Option<Arc<str>>,
    /// Those with these labels only.
    pub labels: Option<Labels>,
}

impl Binding {
    /// Whether it has a Host.
    pub fn includes(&self, host: &Meta) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| *namespace == host.namespace)
            && self.labels.as_ref().is_none_or(|labels| labels_of(host).contains(labels))
    }
}

/// The labels of an object.
pub fn labels_of(meta: &Meta) -> Labels {
    let good = meta.labels.iter().filter_map(|(name, value)| Some((Arc::from(name), Arc::from(&**value.ok()?))));
    Labels::new(good)
}

/// Connections of a Listener, either all or those with TLS or without, and what becomes of requests for a Host on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections<'l> {
    /// The listener that has them.
    pub listener: &'l ListenerId,
    /// Whether they are TLS.
    pub is_tls: bool,
    /// What becomes of requests.
    pub exposure: Exposure,
}

impl BoundListener {
    /// The connections that it takes, those with TLS first, for a Host that does this with insecure requests.
    pub fn connections(&self, action: Option<InsecureAction>) -> impl Iterator<Item = Connections<'_>> {
        let own = Connections { listener: &self.id, is_tls: self.is_tls, exposure: self.exposure(action) };
        let exposure = self.plaintext_exposure(action);
        let plaintext = self.plaintext.as_ref();
        let plaintext = plaintext.map(|claim| Connections { listener: &claim.listener, is_tls: false, exposure });
        std::iter::once(own).chain(plaintext)
    }

    /// What becomes of requests on plaintext connections to a port for TLS: they are not secure, whatever the model says, unless a
    /// proxy in front that is believed says so.
    fn plaintext_exposure(&self, action: Option<InsecureAction>) -> Exposure {
        let Some(action) = action else { return Exposure::All };
        match self.security {
            Security::Forwarded if self.trusts_forwarded => Exposure::Forwarded(action),
            Security::Forwarded | Security::Secure | Security::Insecure => Exposure::Insecure(action),
        }
    }

    fn exposure(&self, action: Option<InsecureAction>) -> Exposure {
        let Some(action) = action else { return Exposure::All };
        match (self.security, self.is_tls) {
            (Security::Secure, _) => Exposure::All,
            (Security::Insecure, _) => Exposure::Insecure(action),
            (Security::Forwarded, _) if self.trusts_forwarded => Exposure::Forwarded(action),
            (Security::Forwarded, true) => Exposure::All,
            (Security::Forwarded, false) => Exposure::Insecure(action),
        }
    }
}

impl Listeners {
    /// The Listeners of an instance, in any order, with what the Module says about those that have ports of their own.
    pub fn of<'l>(
        objects: impl IntoIterator<Item = &'l emissary::Listener>,
        http: Option<&Arc<HttpOverrides>>,
        settings: &Settings,
    ) -> Self {
        let mut objects: Vec<_> = objects.into_iter().map(|object| (precedence(&object.meta, 0), object)).collect();
        objects.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut all = Self::default();
        let mut ports: BTreeMap<(bool, u16), ObjectRef> = BTreeMap::new();
        for (_, object) in objects {
            let subject = ObjectRef::new(kind::LISTENER, object.meta.namespace.clone(), object.meta.name.clone());
            // What is wrong with one that cannot be read is told where it is translated.
            let Some(mut asked) = listener::read(object, &subject, settings).asked else { continue };
            let BoundListener { claim, plaintext, is_http, .. } = &mut asked.bound;
            if let Some(claim) = claim.as_mut().filter(|_| *is_http) {
                claim.overrides.http = http.cloned();
                plaintext.iter_mut().for_each(|plaintext| plaintext.overrides.http = http.cloned());
                let believes_peers = http.and_then(|http| http.believes_peers).unwrap_or_default();
                asked.bound.trusts_forwarded |= believes_peers;
            }
            let port = (asked.bound.is_quic, asked.port);
            let refused = match ports.get(&port) {
                Some(first) => Some(format!(
                    "Duplicate listener on port {}; keeping definition from {}/{}",
                    asked.port, first.namespace, first.name
                )),
                None if all.served.len() >= MOST => Some(format!("at most {MOST} Listeners are served")),
                None => None,
            };
            match refused {
                Some(why) => _ = all.refused.insert(subject, why.into()),
                None => {
                    ports.insert(port, subject);
                    all.served.push(asked.bound);
                }
            }
        }
        all
    }

    /// Those that bind a Host.
    pub fn binding(&self, host: &Meta) -> impl Iterator<Item = &BoundListener> {
        self.served.iter().filter(|listener| listener.is_http && listener.binding.includes(host))
    }

    /// The one that an object is.
    pub fn served(&self, object: &ObjectRef) -> Option<&BoundListener> {
        self.served.iter().find(|listener| listener.object == *object)
    }
}
