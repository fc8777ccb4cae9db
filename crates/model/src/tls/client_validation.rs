//! Client certificates: which of them a TLS host accepts, whether it requires one, and what backends are told about it.

use crate::{ObjectRef, cluster::CaBundle};
use std::fmt;

/// What a TLS host does with client certificates. It is decided in the handshake, so it is part of what hosts share a filter
/// chain by: a connection that one host accepts never carries requests for a host that would not have accepted it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientValidation {
    /// Which certificates are accepted.
    pub trust: ClientTrust,
    /// Whether clients without a certificate are refused.
    pub is_required: bool,
    /// What backends are told about the certificate; nothing if absent.
    pub forward: Option<ForwardedDetails>,
}

/// Which client certificates are accepted. Everything in it comes as one secret, so that a new CA or CRL changes no listener.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientTrust {
    /// Those that a CA of the bundle signed.
    Signed {
        /// The bundle.
        ca: CaBundle,
        /// Which of them are revoked.
        crl: Option<RevocationCheck>,
    },
    /// All of them, also those that nobody signed: somebody else verifies them. The names of the CAs in the bundle are sent to
    /// clients, which choose a certificate by them.
    Unverified {
        /// The bundle.
        ca: Option<CaBundle>,
    },
}

/// Which certificates are looked up in which CRLs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RevocationCheck {
    /// The object that holds the CRLs: one for each CA.
    pub crls: ObjectRef,
    /// Whether only the client's own certificate is looked up, not those of the CAs between it and the root.
    pub leaf_only: bool,
}

impl ClientTrust {
    /// The CAs, where there are any.
    pub fn ca(&self) -> Option<&CaBundle> {
        match self {
            ClientTrust::Signed { ca, .. } => Some(ca),
            ClientTrust::Unverified { ca } => ca.as_ref(),
        }
    }

    /// The CRLs, where there are any.
    pub fn crl(&self) -> Option<&RevocationCheck> {
        match self {
            ClientTrust::Signed { crl, .. } => crl.as_ref(),
            ClientTrust::Unverified { .. } => None,
        }
    }
}

/// What backends are told about a client certificate in `x-forwarded-client-cert`, besides its hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ForwardedDetails {
    /// Its subject.
    pub subject: bool,
    /// The certificate itself.
    pub certificate: bool,
    /// The certificate with those of the CAs that the client sent.
    pub chain: bool,
    /// Its DNS names.
    pub dns: bool,
    /// Its URI.
    pub uri: bool,
}

/// A name from identity. No name of an object has a `+`.
impl fmt::Display for ClientTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ClientTrust::Signed { .. } => "signed",
            ClientTrust::Unverified { .. } => "unverified",
        })?;
        for ObjectRef { kind, namespace, name } in self.ca().into_iter().flat_map(CaBundle::objects) {
            write!(f, "+{}/{namespace}/{name}", kind.plural())?;
        }
        if let Some(RevocationCheck { crls: ObjectRef { namespace, name, .. }, leaf_only }) = self.crl() {
            write!(f, "+{}/{namespace}/{name}", if *leaf_only { "leaf-crl" } else { "crl" })?;
        }
        Ok(())
    }
}

/// A name from identity.
impl fmt::Display for ClientValidation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trust, is_required, forward } = self;
        write!(f, "{}+{trust}", if *is_required { "required" } else { "optional" })?;
        if let Some(ForwardedDetails { subject, certificate, chain, dns, uri }) = forward {
            f.write_str("+forward")?;
            let details = [("subject", subject), ("cert", certificate), ("chain", chain), ("dns", dns), ("uri", uri)];
            details.into_iter().filter(|(_, is_told)| **is_told).try_for_each(|(name, _)| write!(f, ":{name}"))?;
        }
        Ok(())
    }
}
