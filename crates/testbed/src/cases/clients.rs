//! The client certificates of cases, who signed them, and what was revoked.
//!
//! | name | certificate |
//! |---|---|
//! | `good` | of the CA `mtls`, with a URI and a DNS name |
//! | `chain` | of a CA below `mtls`, which the client sends |
//! | `revoked` | of `mtls`, in its CRL |
//! | `expired`, `early` | of `mtls`, at other times |
//! | `other` | of the CA `mtls-other` |
//! | `foreign` | of a CA that is called like `mtls`, with another key |

use std::collections::BTreeMap;

use crate::certs::{Ca, Leaf};

/// Client certificates by name.
#[derive(Debug)]
pub struct ClientCertificates {
    ca: Ca,
    other: Ca,
    between: Ca,
    leaves: BTreeMap<&'static str, Leaf>,
}

impl ClientCertificates {
    /// New ones.
    pub(super) fn new() -> ClientCertificates {
        let (ca, other) = (Ca::new("mtls"), Ca::new("mtls-other"));
        let between = ca.intermediate("mtls-between");
        let leaves = BTreeMap::from([
            ("good", ca.leaf("client").uri("spiffe://cases/good").make()),
            ("chain", between.leaf("client").make()),
            ("revoked", ca.leaf("client").make()),
            ("expired", ca.leaf("client").expired().make()),
            ("early", ca.leaf("client").not_yet_valid().make()),
            ("other", other.leaf("client").make()),
            ("foreign", ca.rotated().leaf("client").make()),
        ]);
        ClientCertificates { ca, other, between, leaves }
    }

    /// Who signed most of them.
    pub(super) fn ca(&self) -> &Ca {
        &self.ca
    }

    /// A certificate.
    pub fn named(&self, name: &str) -> Result<&Leaf, String> {
        self.leaves.get(name).ok_or_else(|| format!("there is no client certificate {name}"))
    }

    /// The CAs of these names, separated by `+`.
    pub(super) fn cas(&self, names: &str) -> Result<String, String> {
        let pem = |name: &str| match name {
            "mtls" => Ok(self.ca.pem()),
            "mtls-other" => Ok(self.other.pem()),
            other => Err(format!("there is no CA of {other}")),
        };
        names.split('+').map(pem).collect()
    }

    /// The CRLs of these names, separated by `+`.
    pub(super) fn crls(&self, names: &str) -> Result<String, String> {
        let revoked = self.named("revoked")?;
        let pem = |name: &str| match name {
            "mtls" => Ok(self.ca.crl([revoked]).pem().to_owned()),
            "mtls-other" => Ok(self.other.crl([]).pem().to_owned()),
            "mtls-between" => Ok(self.between.crl([]).pem().to_owned()),
            "stale" => Ok(self.ca.stale_crl([revoked]).pem().to_owned()),
            "garbage" => Ok("no CRL at all".to_owned()),
            other => Err(format!("there is no CRL of {other}")),
        };
        names.split('+').map(pem).collect()
    }
}
