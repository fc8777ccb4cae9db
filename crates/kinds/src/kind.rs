//! The table of kinds: what the API calls each, which type its objects are read into, and how a document's `apiVersion` and
//! `kind` lead to it.
//!
//! A row is a group and a kind; a type that is read from several groups has several rows, so that two objects of one name
//! in two groups never become one. Of several versions the first is preferred. Everything that would be a `match` over
//! kinds comes from here: the constants below, [`Object`](crate::Object), [`decode`](crate::decode), the engine's tables
//! (by [`visit_types`](crate::object::visit_types)).

use crate::suggest;
use object_ref::{ApiResource, Scope};

pub use object_ref::Kind;

/// The rows, handed to a macro: `Type in module [marks] { CONSTANT = "group" ["versions"] "Kind" "plural" Scope; }`. The marks:
/// `status`, if the type has a field `status` of the type [`Status`](crate::Status), which we may write; `typed_status`, if that
/// field is read into a type of its own, and written by others; [`fetched`](ApiResource::fetched);
/// [`metadata_only`](ApiResource::metadata_only); [`optional`](ApiResource::optional).
macro_rules! table {
    ($callback:ident) => {
        $callback! {
            Namespace in namespace [optional] {
                /// A namespace: read for its labels.
                NAMESPACE = "" ["v1"] "Namespace" "namespaces" Cluster;
            }
            CustomResourceDefinition in custom_resource_definition [metadata_only optional] {
                /// A kind that is not built in: read for the release of its API.
                CUSTOM_RESOURCE_DEFINITION =
                    "apiextensions.k8s.io" ["v1"] "CustomResourceDefinition" "customresourcedefinitions" Cluster;
            }
            IngressClass in ingress_class [optional] {
                /// Which controller owns the Ingresses of a class.
                INGRESS_CLASS = "networking.k8s.io" ["v1"] "IngressClass" "ingressclasses" Cluster;
            }
            Ingress in ingress [status] {
                /// Hosts and paths of HTTP.
                INGRESS = "networking.k8s.io" ["v1"] "Ingress" "ingresses" Namespaced;
            }
            Service in service [typed_status] {
                /// A name for a set of endpoints.
                SERVICE = "" ["v1"] "Service" "services" Namespaced;
            }
            EndpointSlice in endpoint_slice [] {
                /// Some of the endpoints of a Service.
                ENDPOINT_SLICE = "discovery.k8s.io" ["v1"] "EndpointSlice" "endpointslices" Namespaced;
            }
            Secret in secret [fetched] {
                /// Certificates and keys.
                SECRET = "" ["v1"] "Secret" "secrets" Namespaced;
            }
            ConfigMap in config_map [fetched optional] {
                /// Settings and CA bundles.
                CONFIG_MAP = "" ["v1"] "ConfigMap" "configmaps" Namespaced;
            }
            HttpProxy in http_proxy [status] {
                /// Hosts, routes and policies of HTTP that several teams may share: as Contour has it.
                CONTOUR_HTTP_PROXY = "projectcontour.io" ["v1"] "HTTPProxy" "httpproxies" Namespaced;
                /// The same in Sesame's own group.
                SESAME_HTTP_PROXY = "projectsesame.io" ["v1"] "HTTPProxy" "httpproxies" Namespaced,
                    shown as "HTTPProxy.projectsesame.io";
            }
            TlsCertificateDelegation in tls_certificate_delegation [status] {
                /// Permission for other namespaces to use a Secret: as Contour has it.
                CONTOUR_TLS_CERTIFICATE_DELEGATION =
                    "projectcontour.io" ["v1"] "TLSCertificateDelegation" "tlscertificatedelegations" Namespaced;
                /// The same in Sesame's own group.
                SESAME_TLS_CERTIFICATE_DELEGATION =
                    "projectsesame.io" ["v1"] "TLSCertificateDelegation" "tlscertificatedelegations" Namespaced,
                    shown as "TLSCertificateDelegation.projectsesame.io";
            }
            ContourConfiguration in contour_configuration [status] {
                /// The operator's settings: as Contour has it.
                CONTOUR_CONFIGURATION =
                    "projectcontour.io" ["v1alpha1"] "ContourConfiguration" "contourconfigurations" Namespaced;
                /// The same in Sesame's own group.
                SESAME_CONFIGURATION =
                    "projectsesame.io" ["v1alpha1"] "ContourConfiguration" "contourconfigurations" Namespaced,
                    shown as "ContourConfiguration.projectsesame.io";
            }
            ExtensionService in extension_service [status optional] {
                /// A service that proxies ask: for authorization, rate limits, traces. As Contour has it.
                CONTOUR_EXTENSION_SERVICE =
                    "projectcontour.io" ["v1alpha1"] "ExtensionService" "extensionservices" Namespaced;
                /// The same in Sesame's own group.
                SESAME_EXTENSION_SERVICE =
                    "projectsesame.io" ["v1alpha1"] "ExtensionService" "extensionservices" Namespaced,
                    shown as "ExtensionService.projectsesame.io";
            }
            GatewayClass in gateway [status optional] {
                /// Which controller owns the Gateways of a class.
                GATEWAY_CLASS = "gateway.networking.k8s.io" ["v1", "v1beta1"] "GatewayClass" "gatewayclasses" Cluster;
            }
            Gateway in gateway [status optional] {
                /// Listeners, and the proxies that serve them.
                GATEWAY = "gateway.networking.k8s.io" ["v1", "v1beta1"] "Gateway" "gateways" Namespaced;
            }
            ListenerSet in gateway [status optional] {
                /// More listeners of a Gateway.
                LISTENER_SET = "gateway.networking.k8s.io" ["v1"] "ListenerSet" "listenersets" Namespaced;
            }
            HttpRoute in gateway [status optional] {
                /// Routes of HTTP.
                HTTP_ROUTE = "gateway.networking.k8s.io" ["v1", "v1beta1"] "HTTPRoute" "httproutes" Namespaced;
            }
            GrpcRoute in gateway [status optional] {
                /// Routes of gRPC.
                GRPC_ROUTE = "gateway.networking.k8s.io" ["v1"] "GRPCRoute" "grpcroutes" Namespaced;
            }
            TlsRoute in gateway [status optional] {
                /// Where TLS connections go, by server name.
                TLS_ROUTE = "gateway.networking.k8s.io" ["v1", "v1alpha3", "v1alpha2"] "TLSRoute" "tlsroutes" Namespaced;
            }
            TcpRoute in gateway [status optional] {
                /// Where TCP connections go.
                TCP_ROUTE = "gateway.networking.k8s.io" ["v1", "v1alpha2"] "TCPRoute" "tcproutes" Namespaced;
            }
            UdpRoute in gateway [status optional] {
                /// Where UDP datagrams go.
                UDP_ROUTE = "gateway.networking.k8s.io" ["v1", "v1alpha2"] "UDPRoute" "udproutes" Namespaced;
            }
            ReferenceGrant in gateway [optional] {
                /// Permission for objects of other namespaces to refer to objects of this one.
                REFERENCE_GRANT =
                    "gateway.networking.k8s.io" ["v1", "v1beta1"] "ReferenceGrant" "referencegrants" Namespaced;
            }
            BackendTlsPolicy in gateway [status] {
                /// TLS towards the backends of a Service.
                BACKEND_TLS_POLICY =
                    "gateway.networking.k8s.io" ["v1", "v1alpha3"] "BackendTLSPolicy" "backendtlspolicies" Namespaced;
            }
            Mapping in emissary [status] {
                /// Which requests go to a service, and how: as Emissary has it.
                MAPPING = "getambassador.io" ["v3alpha1", "v2", "v1"] "Mapping" "mappings" Namespaced;
            }
            TcpMapping in emissary [] {
                /// Where TCP connections go: as Emissary has it.
                TCP_MAPPING = "getambassador.io" ["v3alpha1", "v2", "v1"] "TCPMapping" "tcpmappings" Namespaced;
            }
            Host in emissary [status] {
                /// A name, its certificate, and what happens to plaintext requests: as Emissary has it.
                HOST = "getambassador.io" ["v3alpha1", "v2"] "Host" "hosts" Namespaced;
            }
            Listener in emissary [] {
                /// A port, and the protocols on it: as Emissary has it.
                LISTENER = "getambassador.io" ["v3alpha1"] "Listener" "listeners" Namespaced;
            }
            TlsContext in emissary [] {
                /// Settings of TLS: as Emissary has it.
                TLS_CONTEXT = "getambassador.io" ["v3alpha1", "v2", "v1"] "TLSContext" "tlscontexts" Namespaced;
            }
            Module in emissary [] {
                /// Settings of the whole instance: as Emissary has it.
                MODULE = "getambassador.io" ["v3alpha1", "v2", "v1"] "Module" "modules" Namespaced;
            }
            AuthService in emissary [] {
                /// Who is asked whether a request may pass: as Emissary has it.
                AUTH_SERVICE = "getambassador.io" ["v3alpha1", "v2", "v1"] "AuthService" "authservices" Namespaced;
            }
            RateLimitService in emissary [] {
                /// Who is asked whether there are too many requests: as Emissary has it.
                RATE_LIMIT_SERVICE =
                    "getambassador.io" ["v3alpha1", "v2", "v1"] "RateLimitService" "ratelimitservices" Namespaced;
            }
            LogService in emissary [optional] {
                /// Who is sent the access log: as Emissary has it.
                LOG_SERVICE = "getambassador.io" ["v3alpha1", "v2", "v1"] "LogService" "logservices" Namespaced;
            }
            TracingService in emissary [optional] {
                /// Who is sent the traces: as Emissary has it.
                TRACING_SERVICE =
                    "getambassador.io" ["v3alpha1", "v2", "v1"] "TracingService" "tracingservices" Namespaced;
            }
            KubernetesServiceResolver in emissary [optional] {
                /// Finds a service by its DNS name: as Emissary has it.
                KUBERNETES_SERVICE_RESOLVER = "getambassador.io" ["v3alpha1", "v2", "v1"]
                    "KubernetesServiceResolver" "kubernetesserviceresolvers" Namespaced;
            }
            KubernetesEndpointResolver in emissary [optional] {
                /// Finds the endpoints of a Service: as Emissary has it.
                KUBERNETES_ENDPOINT_RESOLVER = "getambassador.io" ["v3alpha1", "v2", "v1"]
                    "KubernetesEndpointResolver" "kubernetesendpointresolvers" Namespaced;
            }
            ConsulResolver in emissary [optional] {
                /// Finds the endpoints of a service in Consul: as Emissary has it.
                CONSUL_RESOLVER =
                    "getambassador.io" ["v3alpha1", "v2", "v1"] "ConsulResolver" "consulresolvers" Namespaced;
            }
            DevPortal in emissary [optional] {
                /// A developer portal, without effect: as Emissary has it.
                DEV_PORTAL = "getambassador.io" ["v3alpha1", "v2", "v1"] "DevPortal" "devportals" Namespaced;
            }
        }
    };
}

pub(crate) use table;

macro_rules! marked {
    ([] $row:expr) => { $row };
    ([status $($rest:ident)*] $row:expr) => { marked!([$($rest)*] $row.own_status()) };
    ([typed_status $($rest:ident)*] $row:expr) => { marked!([$($rest)*] $row) };
    ([$mark:ident $($rest:ident)*] $row:expr) => { marked!([$($rest)*] $row.$mark()) };
}

macro_rules! constants {
    ($($type:ident in $module:ident $marks:tt {$(
        $(#[$doc:meta])*
        $constant:ident = $group:literal [$($version:literal),+] $name:literal $plural:literal $scope:ident
            $(, shown as $label:literal)?;
    )+})*) => {
        $($(
            $(#[$doc])*
            pub const $constant: Kind = {
                static ROW: ApiResource = marked!($marks
                    ApiResource::new($group, &[$($version),+], $name, $plural, Scope::$scope)$(.labelled($label))?
                );
                Kind::new(&ROW)
            };
        )+)*

        /// Every kind, in every group it is read from.
        pub const ALL: &[Kind] = &[$($($constant,)+)*];
    };
}

table!(constants);

/// The kind with this `apiVersion` and `kind`, if it is one of ours.
pub fn of(api_version: &str, name: &str) -> Option<Kind> {
    named(name).find(|kind| kind.is_read_from(api_version))
}

/// The kind that was probably meant by a name that is none.
pub fn meant_by(name: &str) -> Option<&'static str> {
    suggest::nearest(name, ALL.iter().map(|kind| kind.name()))
}

/// The kinds of this name in whatever group: to tell a wrong `apiVersion` from a foreign kind.
pub fn named(name: &str) -> impl Iterator<Item = Kind> {
    ALL.iter().copied().filter(move |kind| kind.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_leads_to_its_kind_and_back() {
        for &kind in ALL {
            assert_eq!(of(&kind.api_version(), kind.name()), Some(kind));
        }
        assert_eq!(of("networking.k8s.io/v1", "Ingress"), Some(INGRESS));
        assert_eq!(of("v1", "Service"), Some(SERVICE));
        assert_eq!(of("extensions/v1beta1", "Ingress"), None);
        assert_eq!(of("networking.k8s.io/v1beta1", "Ingress"), None);
        assert_eq!(of("v1", "Ingress"), None);
        assert_eq!(of("", ""), None);
        assert_eq!((meant_by("ingres"), meant_by("Deployment")), (Some("Ingress"), None));
    }

    #[test]
    fn one_kind_in_two_groups_is_two_kinds() {
        let found: Vec<_> = named("TLSCertificateDelegation").map(Kind::api_version).collect();
        assert_eq!(found, ["projectcontour.io/v1", "projectsesame.io/v1"]);
    }

    #[test]
    fn no_two_kinds_are_shown_by_one_name() {
        let mut labels: Vec<_> = ALL.iter().map(|kind| kind.label()).collect();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), ALL.len());
    }
}
