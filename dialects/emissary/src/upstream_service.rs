//! A service that proxies themselves call: that of an AuthService, a RateLimitService, a LogService or a TracingService.
//!
//! In: the text of `service` and the name of a TLSContext. Out: what is behind it, and how connections to it are made. A name without a
//! dot is a Service of the object's namespace, or else of Sesame's: Emissary looks for it in its own.

use crate::{
    EmissaryView, Problem, Problems, Resolver, Settings, duration,
    mapping::{
        service::{self, NotLocated},
        upstream::{self, CONNECT_TIMEOUT},
    },
    tls_context::Context,
};
use kinds::Checked;
use model::{
    ClusterId, Code, Timeout,
    cluster::{Backend, ClusterOverrides, Extension},
};
use std::{sync::Arc, time::Duration};

/// A service that proxies call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpstreamService {
    /// What is behind it.
    pub backend: Backend,
    /// Whether connections to it are TLS.
    pub is_tls: bool,
    /// The settings of TLS, if the object names some.
    pub context: Option<Context>,
    /// Host and port, as they are written.
    pub authority: Arc<str>,
    /// The name that Linkerd knows it by.
    pub linkerd: Arc<str>,
}

impl UpstreamService {
    /// How it is called: over HTTP/2 or HTTP/1.1, with what else an object says about connections.
    pub(crate) fn extension(
        &self,
        is_h2: bool,
        overrides: ClusterOverrides,
        view: &mut impl EmissaryView,
    ) -> Extension {
        let Self { backend, is_tls, context, .. } = self;
        let of_connection = upstream::connection(backend, *is_tls, is_h2, context.as_ref(), view);
        let ClusterOverrides { protocol, server_name, validation, client_certificate, tls_versions, .. } =
            of_connection;
        let tls_parameters = of_connection.tls_parameters;
        let connect_timeout = Some(CONNECT_TIMEOUT);
        let overrides = ClusterOverrides {
            protocol,
            server_name,
            validation,
            client_certificate,
            tls_versions,
            tls_parameters,
            connect_timeout,
            ..overrides
        };
        let cluster = ClusterId { backend: backend.clone(), overrides: overrides.shared() };
        Extension { cluster, authority: self.authority.clone(), response_timeout: Timeout::Default }
    }
}

/// An object that names a service which proxies call, on its way through the dialect.
pub(crate) struct Reading<'a, 'o, V> {
    /// The namespace of the object.
    pub namespace: &'a str,
    /// The code of what is wrong with its fields.
    pub code: Code,
    /// Where things are looked up.
    pub view: &'a mut V,
    /// The settings.
    pub settings: &'a Settings,
    /// What is wrong.
    pub problems: &'a mut Problems<'o>,
    /// Whether it depends on a Secret that has not been read yet.
    pub is_pending: bool,
}

impl<V: EmissaryView> Reading<'_, '_, V> {
    /// A field is wrong.
    pub(crate) fn refuse(&mut self, field: &str, why: impl Into<Box<str>>) {
        self.problems.refuse(Problem::new(self.code, field, why));
    }

    /// The service of a field; nothing, and a verdict, where it cannot be called.
    pub(crate) fn service(
        &mut self,
        field: &str,
        service: &Checked<Option<Box<str>>>,
        tls: Option<&Checked<Option<Box<str>>>>,
    ) -> Option<UpstreamService> {
        let text = self.problems.read(field, service)?.as_deref().filter(|text| !text.is_empty());
        let Some(text) = text else {
            self.refuse(field, format!("{field} is missing"));
            return None;
        };
        let written = match service::parse(text) {
            Ok(written) => written,
            Err(why) => {
                self.refuse(field, why);
                return None;
            }
        };
        if written.junk {
            self.problems.no_effect(field, "what follows the host and the port has no effect");
        }
        let named = tls.and_then(|tls| self.problems.optional("tls", tls)).filter(|name| !name.is_empty());
        let is_tls = written.is_https || (named.is_some() && !written.has_scheme);
        let context = match named {
            Some(_) if !is_tls => {
                self.problems.no_effect("tls", "the scheme of the service is http, so connections to it are not TLS");
                None
            }
            Some(name) => {
                let (context, is_pending) =
                    service::context(name, self.namespace, self.code, self.view, self.settings, self.problems);
                self.is_pending |= is_pending;
                Some(context?)
            }
            None => None,
        };
        let own = self.namespace;
        let mut located =
            service::locate(&written, is_tls, Resolver::Service, own, self.view).map(|found| (found, own));
        let is_absent = |rejection: &NotLocated| matches!(rejection, NotLocated::Rejected(rejection) if rejection.code == Code::ServiceNotFound);
        if !written.host.contains('.') && located.as_ref().is_err_and(is_absent) {
            let namespace = &*self.settings.namespace;
            let elsewhere = service::locate(&written, is_tls, Resolver::Service, namespace, self.view);
            located = elsewhere.map(|found| (found, namespace)).or(located);
        }
        match located {
            Ok((backend, namespace)) => {
                let port = written.port(is_tls);
                let qualified = match written.host.contains(['.', ':']) {
                    true => written.host.to_string(),
                    false => format!("{}.{namespace}", written.host),
                };
                let authority = match written.host.contains(':') {
                    true => format!("[{}]:{port}", written.host).into(),
                    false => format!("{}:{port}", written.host).into(),
                };
                Some(UpstreamService {
                    backend,
                    is_tls,
                    context,
                    authority,
                    linkerd: format!("{qualified}:{port}").into(),
                })
            }
            Err(rejection) => {
                rejection.report(field, self.code, self.problems);
                None
            }
        }
    }

    /// A time in milliseconds, or this one.
    pub(crate) fn milliseconds(&mut self, field: &str, value: &Checked<Option<i64>>, default: u64) -> Option<Timeout> {
        let found = duration::milliseconds(self.problems, self.code, field, value)?;
        Some(found.unwrap_or(Timeout::After(Duration::from_millis(default))))
    }
}
