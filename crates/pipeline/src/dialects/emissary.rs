//! Emissary, wired: the objects of this instance, those in annotations included ([`crate::emissary`]), its Listeners as Hosts need
//! them, Hosts by their names, resolvers.
//!
//! All Listeners are one row, made of the Listeners alone: a Host or a Mapping that comes or goes leaves it as it is, and a Listener
//! wakes the Hosts. Mappings read no Listener and no Host.

use super::Dialect;
use crate::{
    emissary::{
        self, Emissary, EmissaryObject, Modules, all,
        authorization::{self, EmissaryAuthService, EmissaryAuthServices},
        logs::{self, EmissaryLogServices},
        rate_limits::{self, EmissaryRateLimitService, EmissaryRateLimitServices},
        tracing::{self, EmissaryTracingServices},
    },
    settings::ForEmissary,
    view::TableView,
};
use dialect_emissary::{
    AuthServiceInEffect, ClientDefaults, EmissaryView, Listeners, MappingDefaults, RateLimitServiceInEffect, Resolver,
    TcpPlan, auth_service, consul_resolver, dev_portal, host, listener, log_service, mapping, module,
    rate_limit_service, tcp_mapping, tls_context, tracing_service,
};
use engine::{Derived, Index, Reads, Table};
use kinds::{
    Kind, Typed,
    emissary::{
        AuthService, ConsulResolver, DevPortal, HasAmbassadorId, Host, KubernetesEndpointResolver,
        KubernetesServiceResolver, Listener, LogService, Mapping, Module, RateLimitService, TcpMapping, TlsContext,
        TracingService,
    },
    kind,
};
use model::{ObjectRef, Translation};
use std::{collections::BTreeSet, marker::PhantomData, sync::Arc};

/// Emissary.
pub struct EmissaryDialect;

impl Dialect for EmissaryDialect {
    fn translates(&self) -> &'static [Kind] {
        &[
            kind::LISTENER,
            kind::HOST,
            kind::MAPPING,
            kind::TCP_MAPPING,
            kind::TLS_CONTEXT,
            kind::MODULE,
            kind::AUTH_SERVICE,
            kind::RATE_LIMIT_SERVICE,
            kind::LOG_SERVICE,
            kind::TRACING_SERVICE,
            kind::CONSUL_RESOLVER,
            kind::DEV_PORTAL,
        ]
    }

    fn looks_up(&self) -> &'static [Kind] {
        &[kind::KUBERNETES_SERVICE_RESOLVER, kind::KUBERNETES_ENDPOINT_RESOLVER]
    }

    fn declare(&self, pipeline: &mut engine::Pipeline, fetched_secrets: bool) {
        emissary::declare(pipeline);
        pipeline.derived(EmissaryMappingDefaults).always(()).fans_out();
        pipeline.derived(EmissaryClientDefaults).always(()).fans_out();
        pipeline.derived(EmissaryListeners).always(()).fans_out();
        pipeline.derived(EmissaryHosts).always(()).fans_out();
        authorization::declare(pipeline, fetched_secrets);
        rate_limits::declare(pipeline, fetched_secrets);
        tracing::declare(pipeline, fetched_secrets);
        logs::declare(pipeline, fetched_secrets);
        pipeline.derived(EmissaryTcpPlan).always(()).fans_out();
        pipeline.index::<HostsByName>().index::<TlsContextsByHost>();
        pipeline.index::<ByName<TlsContext>>().index::<ByName<ConsulResolver>>();
        pipeline.index::<ByName<KubernetesEndpointResolver>>().index::<ByName<KubernetesServiceResolver>>();
    }

    fn translate(&self, object: &ObjectRef, view: &mut TableView<'_, '_>) -> Option<Translation> {
        let settings = view.reads().get::<ForEmissary>(&())?;
        match object.kind {
            kind if kind == kind::LISTENER => {
                Some(listener::translate(&*view.emissary::<Listener>(object)?, view, settings))
            }
            kind if kind == kind::HOST => Some(host::translate(&*view.emissary::<Host>(object)?, view, settings)),
            kind if kind == kind::MAPPING => {
                Some(mapping::translate(&*view.emissary::<Mapping>(object)?, view, settings))
            }
            kind if kind == kind::MODULE => {
                let module = view.emissary::<Module>(object)?;
                let in_effect = view.reads().get::<Modules>(&());
                let in_effect = in_effect.map(|module| &**module);
                Some(module::translate(&module, in_effect, view, settings))
            }
            kind if kind == kind::TLS_CONTEXT => {
                Some(tls_context::translate(&*view.emissary::<TlsContext>(object)?, view, settings))
            }
            kind if kind == kind::TCP_MAPPING => {
                Some(tcp_mapping::translate(&*view.emissary::<TcpMapping>(object)?, view, settings))
            }
            kind if kind == kind::AUTH_SERVICE => {
                view.emissary::<AuthService>(object)?;
                let Some(row) = view.reads().get::<EmissaryAuthServices>(&()) else {
                    return Some(auth_service::passed_over(object.clone()));
                };
                row.secrets.iter().for_each(|secret| view.want(secret));
                Some(auth_service::translate(object.clone(), &row.all))
            }
            kind if kind == kind::RATE_LIMIT_SERVICE => {
                view.emissary::<RateLimitService>(object)?;
                let row = view.reads().get::<EmissaryRateLimitServices>(&())?;
                row.secrets.iter().for_each(|secret| view.want(secret));
                Some(rate_limit_service::translate(object.clone(), &row.all))
            }
            kind if kind == kind::TRACING_SERVICE => {
                view.emissary::<TracingService>(object)?;
                let row = view.reads().get::<EmissaryTracingServices>(&())?;
                row.secrets.iter().for_each(|secret| view.want(secret));
                Some(tracing_service::translate(object.clone(), &row.all))
            }
            kind if kind == kind::LOG_SERVICE => {
                view.emissary::<LogService>(object)?;
                let row = view.reads().get::<EmissaryLogServices>(&())?;
                row.secrets.iter().for_each(|secret| view.want(secret));
                Some(log_service::translate(object.clone(), &row.all))
            }
            kind if kind == kind::CONSUL_RESOLVER => {
                Some(consul_resolver::translate(&*view.emissary::<ConsulResolver>(object)?))
            }
            _ => Some(dev_portal::translate(&*view.emissary::<DevPortal>(object)?)),
        }
    }

    fn exceeds(&self, _: &ObjectRef, _: usize, _: &mut TableView<'_, '_>) -> bool {
        false
    }
}

impl TableView<'_, '_> {
    /// An object of Emissary that is for this instance, wherever it stands.
    pub fn emissary<T: Typed>(&mut self, object: &ObjectRef) -> Option<Arc<T>>
    where
        Emissary<T>: engine::Table<Key = ObjectRef, Value = EmissaryObject<T>>,
    {
        self.reads().get::<Emissary<T>>(object).map(|found| found.object.clone())
    }
}

impl TableView<'_, '_> {
    /// The oldest object of this name in any namespace.
    fn oldest<T: Typed + HasAmbassadorId>(&mut self, name: &str) -> Option<Arc<T>> {
        let keys: Vec<_> = self.reads().probe::<ByName<T>>(&name.into()).cloned().collect();
        let objects = keys.into_iter().filter_map(|key| {
            let object = self.emissary::<T>(&key)?;
            Some(((object.meta().created, key), object))
        });
        objects.min_by(|(a, _), (b, _)| a.cmp(b)).map(|(_, object)| object)
    }
}

/// What the Module in effect says where a Mapping does not: one of its other keys wakes no Mapping.
pub struct EmissaryMappingDefaults;

impl Table for EmissaryMappingDefaults {
    type Key = ();
    type Value = MappingDefaults;
    const NAME: &'static str = "defaults of mappings of Emissary";
}

impl Derived for EmissaryMappingDefaults {
    fn compute(&self, (): &(), reads: &mut Reads<'_>) -> Option<MappingDefaults> {
        let settings = reads.get::<ForEmissary>(&())?;
        Some(reads.get::<Modules>(&())?.mapping_defaults(settings))
    }
}

/// What the Module in effect says about TLS of clients.
pub struct EmissaryClientDefaults;

impl Table for EmissaryClientDefaults {
    type Key = ();
    type Value = ClientDefaults;
    const NAME: &'static str = "defaults of TLS of Emissary";
}

impl Derived for EmissaryClientDefaults {
    fn compute(&self, (): &(), reads: &mut Reads<'_>) -> Option<ClientDefaults> {
        Some(reads.get::<Modules>(&())?.client_defaults())
    }
}

/// All Listeners of the instance.
pub struct EmissaryListeners;

impl Table for EmissaryListeners {
    type Key = ();
    type Value = Listeners;
    const NAME: &'static str = "listeners of Emissary";
}

impl Derived for EmissaryListeners {
    fn compute(&self, (): &(), reads: &mut Reads<'_>) -> Option<Listeners> {
        let settings = reads.get::<ForEmissary>(&())?;
        let http = reads.get::<Modules>(&()).and_then(|module| module.http(settings));
        let objects = all::<Listener>(reads);
        Some(Listeners::of(objects.iter().map(|(_, object)| &**object), http.as_ref(), settings))
    }
}

/// Whether there is a Host of the instance: the row is there then. One that comes or goes beside others wakes nobody.
pub struct EmissaryHosts;

impl Table for EmissaryHosts {
    type Key = ();
    type Value = ();
    const NAME: &'static str = "any host of Emissary";
}

impl Derived for EmissaryHosts {
    fn compute(&self, (): &(), reads: &mut Reads<'_>) -> Option<()> {
        (!reads.scan::<Emissary<Host>>().is_empty()).then_some(())
    }
}

/// Objects by their names alone, for operators who trust all namespaces.
pub struct ByName<T>(PhantomData<T>);

impl<T: Typed + HasAmbassadorId> Index for ByName<T> {
    type Of = Emissary<T>;
    type Key = Arc<str>;
    const NAME: &'static str = "by name alone";

    fn keys(key: &ObjectRef, _: &EmissaryObject<T>) -> impl IntoIterator<Item = Arc<str>> {
        [key.name.clone()]
    }
}

/// All TCPMappings of the instance: which share connections. An edit of what is none of that wakes nobody else.
pub struct EmissaryTcpPlan;

impl Table for EmissaryTcpPlan {
    type Key = ();
    type Value = TcpPlan;
    const NAME: &'static str = "TCP mappings of Emissary";
}

impl Derived for EmissaryTcpPlan {
    fn compute(&self, (): &(), reads: &mut Reads<'_>) -> Option<TcpPlan> {
        let settings = reads.get::<ForEmissary>(&())?;
        let objects = all::<TcpMapping>(reads);
        Some(TcpPlan::of(objects.iter().map(|(_, object)| &**object), settings))
    }
}

/// TLSContexts by the host names that they list, as they are written.
pub struct TlsContextsByHost;

impl Index for TlsContextsByHost {
    type Of = Emissary<TlsContext>;
    type Key = Arc<str>;
    const NAME: &'static str = "by host";

    fn keys(_: &ObjectRef, context: &EmissaryObject<TlsContext>) -> impl IntoIterator<Item = Arc<str>> {
        let hosts = context.object.spec.hosts.ok().and_then(Option::as_deref).unwrap_or_default();
        hosts.iter().map(|host| host.to_ascii_lowercase().into()).collect::<BTreeSet<_>>()
    }
}

/// Hosts by their hostnames, without ports.
pub struct HostsByName;

impl Index for HostsByName {
    type Of = Emissary<Host>;
    type Key = Arc<str>;
    const NAME: &'static str = "by hostname";

    fn keys(_: &ObjectRef, host: &EmissaryObject<Host>) -> impl IntoIterator<Item = Arc<str>> {
        [host::server_name(&host.object).into()]
    }
}

impl EmissaryView for TableView<'_, '_> {
    fn listeners(&mut self) -> Arc<Listeners> {
        self.reads().get::<EmissaryListeners>(&()).cloned().unwrap_or_default()
    }

    fn has_hosts(&mut self) -> bool {
        self.reads().get::<EmissaryHosts>(&()).is_some()
    }

    fn hosts_named(&mut self, hostname: &str) -> Vec<Arc<Host>> {
        let keys: Vec<_> = self.reads().probe::<HostsByName>(&hostname.into()).collect();
        keys.into_iter().filter_map(|key| self.emissary(key)).collect()
    }

    fn resolver(&mut self, namespace: &str, name: &str) -> Option<Resolver> {
        let of = |kind| ObjectRef::new(kind, namespace, name);
        if self.emissary::<KubernetesEndpointResolver>(&of(kind::KUBERNETES_ENDPOINT_RESOLVER)).is_some() {
            return Some(Resolver::Endpoint);
        }
        if self.emissary::<KubernetesServiceResolver>(&of(kind::KUBERNETES_SERVICE_RESOLVER)).is_some() {
            return Some(Resolver::Service);
        }
        self.emissary::<ConsulResolver>(&of(kind::CONSUL_RESOLVER)).map(|_| Resolver::Consul)
    }

    fn tls_context(&mut self, namespace: &str, name: &str) -> Option<Arc<TlsContext>> {
        self.emissary(&ObjectRef::new(kind::TLS_CONTEXT, namespace, name))
    }

    fn any_resolver(&mut self, name: &str) -> Option<Resolver> {
        let endpoint = self.oldest::<KubernetesEndpointResolver>(name).map(|_| Resolver::Endpoint);
        let service = endpoint.or_else(|| self.oldest::<KubernetesServiceResolver>(name).map(|_| Resolver::Service));
        service.or_else(|| self.oldest::<ConsulResolver>(name).map(|_| Resolver::Consul))
    }

    fn any_tls_context(&mut self, name: &str) -> Option<Arc<TlsContext>> {
        self.oldest(name)
    }

    fn tls_contexts_of(&mut self, host: &str) -> Vec<Arc<TlsContext>> {
        let keys: Vec<_> = self.reads().probe::<TlsContextsByHost>(&host.into()).collect();
        keys.into_iter().filter_map(|key| self.emissary(key)).collect()
    }

    fn tcp_plan(&mut self) -> Arc<TcpPlan> {
        self.reads().get::<EmissaryTcpPlan>(&()).cloned().unwrap_or_default()
    }

    fn tcp_mapping(&mut self, object: &ObjectRef) -> Option<Arc<TcpMapping>> {
        self.emissary(object)
    }

    fn auth_service(&mut self) -> Option<AuthServiceInEffect> {
        self.reads().get::<EmissaryAuthService>(&()).map(|found| AuthServiceInEffect::clone(found))
    }

    fn mapping_defaults(&mut self) -> Arc<MappingDefaults> {
        self.reads().get::<EmissaryMappingDefaults>(&()).cloned().unwrap_or_default()
    }

    fn client_defaults(&mut self) -> Arc<ClientDefaults> {
        self.reads().get::<EmissaryClientDefaults>(&()).cloned().unwrap_or_default()
    }

    fn rate_limit_service(&mut self) -> Option<RateLimitServiceInEffect> {
        self.reads().get::<EmissaryRateLimitService>(&()).map(|found| RateLimitServiceInEffect::clone(found))
    }
}
