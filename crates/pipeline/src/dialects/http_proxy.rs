//! HTTPProxy of both groups, wired: the objects that a root includes, and the roots of a name.

use super::Dialect;
use crate::{objects::Objects, view::TableView};
use dialect_httpproxy::{HttpProxyView, Settings, translate};
use engine::Index;
use kinds::{HttpProxy, Kind, Typed};
use model::{ObjectRef, Translation};
use std::sync::Arc;

/// HTTPProxies, with what the operator set for them.
pub struct HttpProxyDialect(pub Settings);

impl Dialect for HttpProxyDialect {
    fn translates(&self) -> &'static [Kind] {
        HttpProxy::KINDS
    }

    fn declare(&self, pipeline: &mut engine::Pipeline) {
        pipeline.index::<RootsByFqdn>();
    }

    fn translate(&self, object: &ObjectRef, view: &mut TableView<'_, '_>) -> Option<Translation> {
        let proxy = view.get::<HttpProxy>(object)?;
        translate(object.kind, &proxy, view, &self.0)
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
}
