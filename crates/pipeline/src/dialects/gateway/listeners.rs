//! The listeners of Gateways and ListenerSets, as tables.
//!
//! [`GatewayListeners`] decides about all listeners of a Gateway and its ListenerSets together. A route depends on those of its
//! parents alone: [`RouteListeners`] has a row for each object with listeners, so that an edit of a ListenerSet wakes no route of
//! the Gateway or of other sets. Which certificates a listener shows has a row, too ([`ListenerCertificates`]), and which one proxies of
//! a Gateway present to backends ([`BackendCertificates`]): a renewed certificate is the same row.

use crate::{objects::Objects, settings::ForGateways, view::TableView};
use dialect_gateway::{
    Listener, Listeners, Protocol, class,
    gateway::{
        backend_certificate::{self, BackendCertificate},
        tls::{self, ListenerTls},
    },
    listeners,
};
use engine::{Derived, Index, Reads, Table};
use kinds::{Gateway, ListenerSet};
use model::{ObjectRef, translation::Section};
use std::collections::BTreeSet;

/// The listeners of each Gateway that is ours, with those of its ListenerSets.
pub struct GatewayListeners;

impl Table for GatewayListeners {
    type Key = ObjectRef;
    type Value = Listeners;
    const NAME: &'static str = "listeners of gateways";
}

impl Derived for GatewayListeners {
    fn compute(&self, key: &ObjectRef, reads: &mut Reads<'_>) -> Option<Listeners> {
        let gateway = reads.get::<Objects<Gateway>>(key)?;
        let settings = reads.get::<ForGateways>(&())?;
        let mut view = TableView::new(reads, false);
        class::owns(gateway, &mut view, settings).then(|| listeners::merge(gateway, &mut view, settings))
    }
}

/// ListenerSets by the Gateway that they name as their parent.
pub struct SetsByGateway;

impl Index for SetsByGateway {
    type Of = Objects<ListenerSet>;
    type Key = ObjectRef;
    const NAME: &'static str = "by parent gateway";

    fn keys(_: &ObjectRef, set: &ListenerSet) -> impl IntoIterator<Item = ObjectRef> {
        listeners::parent(set)
    }
}

/// Gateways by the objects whose listeners they have: themselves, and their ListenerSets.
pub struct GatewaysByOwner;

impl Index for GatewaysByOwner {
    type Of = GatewayListeners;
    type Key = ObjectRef;
    const NAME: &'static str = "by owner of listeners";

    fn keys(gateway: &ObjectRef, listeners: &Listeners) -> impl IntoIterator<Item = ObjectRef> {
        let owners = listeners.listeners.iter().map(|listener| &listener.owner);
        owners.chain([gateway]).cloned().collect::<BTreeSet<_>>()
    }
}

/// The listeners of each Gateway and ListenerSet, as far as they concern routes.
pub struct RouteListeners;

impl Table for RouteListeners {
    type Key = ObjectRef;
    type Value = Vec<Listener>;
    const NAME: &'static str = "listeners for routes";
}

impl Derived for RouteListeners {
    fn compute(&self, owner: &ObjectRef, reads: &mut Reads<'_>) -> Option<Vec<Listener>> {
        let gateway = reads.probe::<GatewaysByOwner>(owner).next()?;
        Some(reads.get::<GatewayListeners>(gateway)?.for_routes(owner))
    }
}

/// The objects with listeners whose routes depend on certificates, by these listeners.
pub struct TerminatedByListener;

impl Index for TerminatedByListener {
    type Of = RouteListeners;
    type Key = Section;
    const NAME: &'static str = "by terminated listener";

    fn keys(_: &ObjectRef, listeners: &Vec<Listener>) -> impl IntoIterator<Item = Section> {
        let terminated = listeners.iter().filter(|listener| listener.protocol == Some(Protocol::TlsTerminate));
        terminated.map(Listener::section).collect::<Vec<_>>()
    }
}

/// What TLSRoutes must know about the certificates of listeners.
pub struct ListenerCertificates {
    /// Whether Secrets are brought on reference. The Gateway or ListenerSet refers to them, so nobody else has to.
    pub fetched_secrets: bool,
}

impl Table for ListenerCertificates {
    type Key = Section;
    type Value = ListenerTls;
    const NAME: &'static str = "certificates of listeners";
}

impl Derived for ListenerCertificates {
    fn compute(&self, section: &Section, reads: &mut Reads<'_>) -> Option<ListenerTls> {
        let settings = reads.get::<ForGateways>(&())?;
        let listeners = reads.get::<RouteListeners>(&section.object)?;
        let listener = listeners.iter().find(|listener| listener.name == section.name)?;
        Some(tls::of(listener, &mut TableView::new(reads, self.fetched_secrets), settings))
    }
}

/// Which client certificate proxies of a Gateway present to TLS backends, of the Gateways that ask for one.
pub struct BackendCertificates {
    /// Whether Secrets are brought on reference. The Gateway refers to them, so nobody else has to.
    pub fetched_secrets: bool,
}

impl Table for BackendCertificates {
    type Key = ObjectRef;
    type Value = BackendCertificate;
    const NAME: &'static str = "client certificates of gateways";
}

impl Derived for BackendCertificates {
    fn compute(&self, gateway: &ObjectRef, reads: &mut Reads<'_>) -> Option<BackendCertificate> {
        let gateway = reads.get::<Objects<Gateway>>(gateway)?;
        backend_certificate::of(gateway, &mut TableView::new(reads, self.fetched_secrets))
    }
}
