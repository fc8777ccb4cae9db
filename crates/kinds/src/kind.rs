//! The table of kinds: what each is called in the API, and how a document's `apiVersion` and `kind` lead to it.

use crate::suggest;
use std::fmt;

/// The groups in which one kind of ours may stand: objects written for Contour are read as they are.
///
/// It is part of the kind, so that two objects of one name in the two groups never become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vendor {
    /// `projectcontour.io`
    Contour,
    /// `projectsesame.io`
    Sesame,
}

impl Vendor {
    /// The API group.
    pub fn group(self) -> &'static str {
        match self {
            Vendor::Contour => "projectcontour.io",
            Vendor::Sesame => "projectsesame.io",
        }
    }
}

/// A kind of object that Sesame reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A namespace: read for its labels.
    Namespace,
    /// Which controller owns the Ingresses of a class.
    IngressClass,
    /// Hosts and paths of HTTP.
    Ingress,
    /// A name for a set of endpoints.
    Service,
    /// Some of the endpoints of a Service.
    EndpointSlice,
    /// Certificates and keys.
    Secret,
    /// Settings and CA bundles.
    ConfigMap,
    /// Hosts, routes and policies of HTTP, in parts that may belong to different teams.
    HttpProxy(Vendor),
    /// Permission for other namespaces to use a Secret.
    TlsCertificateDelegation(Vendor),
}

/// What the API calls a kind.
struct Row {
    group: &'static str,
    version: &'static str,
    name: &'static str,
    plural: &'static str,
    namespaced: bool,
}

const fn row(group: &'static str, version: &'static str, name: &'static str, plural: &'static str) -> Row {
    Row { group, version, name, plural, namespaced: true }
}

impl Kind {
    /// Every kind, in every group it is read from.
    pub const ALL: &'static [Kind] = &[
        Kind::Namespace,
        Kind::IngressClass,
        Kind::Ingress,
        Kind::Service,
        Kind::EndpointSlice,
        Kind::Secret,
        Kind::ConfigMap,
        Kind::HttpProxy(Vendor::Contour),
        Kind::HttpProxy(Vendor::Sesame),
        Kind::TlsCertificateDelegation(Vendor::Contour),
        Kind::TlsCertificateDelegation(Vendor::Sesame),
    ];

    const fn row(self) -> Row {
        match self {
            Kind::Namespace => Row { namespaced: false, ..row("", "v1", "Namespace", "namespaces") },
            Kind::IngressClass => {
                Row { namespaced: false, ..row("networking.k8s.io", "v1", "IngressClass", "ingressclasses") }
            }
            Kind::Ingress => row("networking.k8s.io", "v1", "Ingress", "ingresses"),
            Kind::Service => row("", "v1", "Service", "services"),
            Kind::EndpointSlice => row("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
            Kind::Secret => row("", "v1", "Secret", "secrets"),
            Kind::ConfigMap => row("", "v1", "ConfigMap", "configmaps"),
            Kind::HttpProxy(Vendor::Contour) => row("projectcontour.io", "v1", "HTTPProxy", "httpproxies"),
            Kind::HttpProxy(Vendor::Sesame) => row("projectsesame.io", "v1", "HTTPProxy", "httpproxies"),
            Kind::TlsCertificateDelegation(Vendor::Contour) => {
                row("projectcontour.io", "v1", "TLSCertificateDelegation", "tlscertificatedelegations")
            }
            Kind::TlsCertificateDelegation(Vendor::Sesame) => {
                row("projectsesame.io", "v1", "TLSCertificateDelegation", "tlscertificatedelegations")
            }
        }
    }

    /// The API group; empty for the core group.
    pub fn group(self) -> &'static str {
        self.row().group
    }

    /// The version that is read.
    pub fn version(self) -> &'static str {
        self.row().version
    }

    /// The name as people write it: `TLSCertificateDelegation`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The name in URLs: `ingresses`.
    pub fn plural(self) -> &'static str {
        self.row().plural
    }

    /// Whether objects of the kind stand in a namespace.
    pub fn is_namespaced(self) -> bool {
        self.row().namespaced
    }

    /// Group and version as `apiVersion` has them: `networking.k8s.io/v1`, `v1`.
    pub fn api_version(self) -> String {
        match self.row() {
            Row { group: "", version, .. } => version.to_owned(),
            Row { group, version, .. } => format!("{group}/{version}"),
        }
    }

    /// The kind with this `apiVersion` and `kind`, if it is one of ours.
    pub fn of(api_version: &str, name: &str) -> Option<Kind> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        Self::named(name).find(|kind| kind.group() == group && kind.version() == version)
    }

    /// The kind that was probably meant by a name that is none.
    pub fn meant_by(name: &str) -> Option<&'static str> {
        suggest::nearest(name, Self::ALL.iter().map(|kind| kind.name()))
    }

    /// The kinds of this name in whatever group: to tell a wrong `apiVersion` from a foreign kind.
    pub fn named(name: &str) -> impl Iterator<Item = Kind> {
        Self::ALL.iter().copied().filter(move |kind| kind.name() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_leads_to_its_kind_and_back() {
        for &kind in Kind::ALL {
            assert_eq!(Kind::of(&kind.api_version(), kind.name()), Some(kind));
        }
        assert_eq!(Kind::of("networking.k8s.io/v1", "Ingress"), Some(Kind::Ingress));
        assert_eq!(Kind::of("v1", "Service"), Some(Kind::Service));
        assert_eq!(Kind::of("extensions/v1beta1", "Ingress"), None);
        assert_eq!(Kind::of("networking.k8s.io/v1beta1", "Ingress"), None);
        assert_eq!(Kind::of("v1", "Ingress"), None);
        assert_eq!(Kind::of("", ""), None);
        assert_eq!((Kind::meant_by("ingres"), Kind::meant_by("HTTPRoute")), (Some("Ingress"), None));
    }

    #[test]
    fn one_kind_in_two_groups_is_two_kinds() {
        let found: Vec<_> = Kind::named("TLSCertificateDelegation").map(Kind::api_version).collect();
        assert_eq!(found, ["projectcontour.io/v1", "projectsesame.io/v1"]);
    }
}
