//! HTTPProxy of both groups, wired: the objects that a root includes, and the roots of a name.

use super::Dialect;
use crate::{jwks::JwksStates, objects::Objects, settings::ForHttpProxies, view::TableView};
use dialect_httpproxy::{HttpProxyView, budget, translate};
use engine::Index;
use kinds::{HttpProxy, Kind, Typed};
use model::{
    ObjectRef, Translation,
    jwt::{Jwks, JwksState, RemoteJwks},
};
use std::sync::Arc;

/// HTTPProxies.
pub struct HttpProxyDialect;

impl Dialect for HttpProxyDialect {
    fn translates(&self) -> &'static [Kind] {
        HttpProxy::KINDS
    }

    fn declare(&self, pipeline: &mut engine::Pipeline, _: bool) {
        pipeline.index::<RootsByFqdn>();
    }

    fn translate(&self, object: &ObjectRef, view: &mut TableView<'_, '_>) -> Option<Translation> {
        let proxy = view.get::<HttpProxy>(object)?;
        let settings = view.reads().get::<ForHttpProxies>(&())?;
        translate(object.kind, &proxy, view, settings)
    }

    fn exceeds(&self, object: &ObjectRef, routes: usize, view: &mut TableView<'_, '_>) -> bool {
        let Some(proxy) = view.get::<HttpProxy>(object) else { return false };
        let is_root = !matches!(proxy.spec.virtual_host.get(), Ok(None));
        is_root && budget::exceeds(object.kind, &proxy, view, routes)
    }
}

/// Roots among HTTPProxies, by the fqdn that they ask for.
pub struct RootsByFqdn;

impl Index for RootsByFqdn {
    type Of = Objects<HttpProxy>;
    type Key = Arc<str>;
    const NAME: &'static str = "by fqdn";

    fn keys(_: &ObjectRef, object: &HttpProxy) -> impl IntoIterator<Item = Arc<str>> {
        let host = object.spec.virtual_host.ok().and_then(Option::as_ref);
        host.and_then(|host| host.fqdn.ok()?.as_deref()).map(Arc::from)
    }
}

impl HttpProxyView for TableView<'_, '_> {
    fn proxy(&mut self, object: &ObjectRef) -> Option<Arc<HttpProxy>> {
        self.get(object)
    }

    fn roots(&mut self, fqdn: &str) -> Vec<(Kind, Arc<HttpProxy>)> {
        let keys: Vec<_> = self.reads().probe::<RootsByFqdn>(&fqdn.into()).collect();
        keys.into_iter().filter_map(|key| Some((key.kind, self.get(key)?))).collect()
    }

    fn jwks(&mut self, source: &Arc<RemoteJwks>) -> Option<Arc<JwksState>> {
        self.reads().get::<JwksStates>(source).cloned()
    }

    fn local_jwks(&mut self, secret: &ObjectRef, entry: &str) -> Option<Result<Jwks, resolve::Rejection>> {
        self.secret(secret, |secret| resolve::jwks::read(secret, entry))
    }
}
