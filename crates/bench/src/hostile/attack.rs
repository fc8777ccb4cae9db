//! The attacks: what each is called, and what it needs of its fixture. What each does stands in the file of what it attacks.

use anyhow::Result;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use testbed::XdsClient;
use testbed::apiserver::Fate;

use super::attacker::Attacker;
use super::{Options, clients, endpoints, objects, secrets, status};
use crate::implementation::Sesame;
use crate::world::Wording;

/// What one tenant, or somebody in its pods, does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Attack {
    /// Names of Secrets that the API server refuses, or does not have
    UnfetchableNames,
    /// Secrets whose GET hangs or is answered 429
    HungGet,
    /// A root whose includes and routes multiply
    LargeRoot,
    /// An Ingress as wide as the API server stores it
    WideIngress,
    /// Objects that xDS clients never acknowledge
    SilentClients,
    /// A root whose routes have more bytes than a table may have
    OverLimit,
    /// TLS handshakes for server names that nobody has
    UnknownNames,
    /// Connections to the xDS port that say nothing
    Unauthenticated,
    /// A Service whose endpoints come and go
    FlappingEndpoints,
    /// A Secret that is rewritten all the time
    RewrittenSecret,
    /// Status writes that conflict
    StatusConflicts,
}

/// What a proxy in front of the API server does to requests.
pub type Rule = Box<dyn Fn(&http::Method, &str) -> Fate + Send + Sync>;

impl Attack {
    /// Its name in tables.
    pub fn label(self) -> &'static str {
        match self {
            Attack::UnfetchableNames => "10,000 names of Secrets that cannot be fetched",
            Attack::HungGet => "a GET that hangs, or is answered 429",
            Attack::LargeRoot => "a root with 700 includes of 700 routes, edited",
            Attack::WideIngress => "an Ingress with 1,000 hosts, as many paths as fit, edited",
            Attack::SilentClients => "10,000 HTTPProxies, 50 clients that acknowledge nothing",
            Attack::OverLimit => "a root whose routes have more than the 4 MiB of a table",
            Attack::UnknownNames => "1,000 unknown server names a second",
            Attack::Unauthenticated => "10,000 unauthenticated xDS connections",
            Attack::FlappingEndpoints => "a Service with 5,000 endpoints that flap",
            Attack::RewrittenSecret => "a Secret rewritten 100 times a second",
            Attack::StatusConflicts => "2,000 status conflicts",
        }
    }

    /// The controller that is attacked.
    pub fn sesame(self, options: &Options) -> Sesame {
        let mut arguments = options.serve.clone();
        match self {
            Attack::UnknownNames => arguments.push("--certificates=on-demand".to_owned()),
            Attack::OverLimit => arguments.push(format!("--table-bytes={}", objects::TABLE_BYTES)),
            _ => {}
        }
        Sesame { program: options.sesame.clone(), arguments }
    }

    /// What the others have.
    pub fn wording(self) -> Wording {
        match self {
            Attack::UnknownNames => Wording::Certificates,
            _ => Wording::Ingresses,
        }
    }

    /// Whether the others are asked through an Envoy, too: not where the attack is one on the Envoy's own size.
    pub fn has_envoy(self) -> bool {
        !matches!(
            self,
            Attack::LargeRoot
                | Attack::WideIngress
                | Attack::OverLimit
                | Attack::SilentClients
                | Attack::Unauthenticated
        )
    }

    /// Whether xDS is encrypted, so that clients have to authenticate.
    pub fn has_tls(self) -> bool {
        self == Attack::Unauthenticated
    }

    /// The faults of the API server.
    pub fn faults(self, options: &Options) -> Option<Rule> {
        match self {
            Attack::HungGet => Some(secrets::faults()),
            Attack::StatusConflicts => Some(status::faults(options)),
            _ => None,
        }
    }

    /// What is there before the others' changes are measured again; the clients stay until the row ends.
    pub async fn prepare(self, attacker: &Attacker) -> Result<Vec<XdsClient>> {
        match self {
            Attack::SilentClients => return clients::silent(attacker).await,
            Attack::HungGet => secrets::prepare(attacker).await?,
            _ => {}
        }
        Ok(Vec::new())
    }

    /// Attacks until the row ends.
    pub async fn strike(self, attacker: &Attacker) -> Result<()> {
        match self {
            Attack::UnfetchableNames => secrets::unfetchable(attacker).await,
            Attack::HungGet => secrets::hung(attacker).await,
            Attack::LargeRoot => objects::large_root(attacker).await,
            Attack::WideIngress => objects::wide_ingress(attacker).await,
            Attack::SilentClients => clients::wait(attacker).await,
            Attack::OverLimit => objects::over_limit(attacker).await,
            Attack::UnknownNames => clients::unknown_names(attacker).await,
            Attack::Unauthenticated => clients::unauthenticated(attacker).await,
            Attack::FlappingEndpoints => endpoints::flapping(attacker).await,
            Attack::RewrittenSecret => secrets::rewritten(attacker).await,
            Attack::StatusConflicts => status::conflicts(attacker).await,
        }
    }
}
