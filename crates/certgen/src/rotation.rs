//! Which Secret is written next, so that certificates and their CA are renewed and nobody ever meets one that it does not trust.
//!
//! In: the Secrets as they are, the time, and what replicas and proxies say they have. Out: one [`Step`]. Everything that a
//! rotation needs to go on is in the Secrets themselves: whoever holds the lease asks again after each write, and a crash
//! between two steps loses nothing. A new CA takes these steps:
//!
//! | step | Secret | then |
//! |---|---|---|
//! | 1 | `sesame-ca` gets the new CA as the next one | |
//! | 2 | `sesamecert`, `envoycert`: the next CA is in both bundles, with a new certificate of the current one | wait until all replicas and proxies have that |
//! | 3 | `sesame-ca`: the next CA is the current one; the key of the old one is gone | |
//! | 4 | `sesamecert`, `envoycert`: certificates of the new CA | wait until all replicas and proxies have them |
//! | 5 | `sesamecert`, `envoycert`: the bundles have the new CA alone | |
//!
//! The certificates of step 2 are what proxies show that they have read the Secret by: Envoy says when its certificate expires,
//! and not which CAs it trusts. One with a token has its CAs in its bootstrap, and says all of them. Certificates of the same CA are
//! renewed by step 4 alone.
//!
//! The clock may be wrong and be set right. A time in a Secret that is still to come is counted anew from now, and a certificate that is not
//! valid yet is replaced like one that has expired. A CA that is not valid yet is kept: nothing tells a clock that is behind from a CA that was
//! made while the clock was ahead, and the first would end every connection for nothing. Nothing is signed until the CA is valid or somebody
//! asks for a new one.

mod certificate;
mod holders;
#[cfg(test)]
mod tests;

use std::time::{Duration, UNIX_EPOCH};

pub use certificate::Certificate;
pub use holders::{CertificateHolders, Waiting};

use crate::issue::{Authority, IssueError, Pair};

/// How long before it expires an old CA is replaced whoever has not reported to trust the new one: after that nobody could
/// connect.
const URGENT: i64 = 30 * 24 * 3600;

/// Durations, in which a third of a lifetime is left for the renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The lifetime of a CA.
    pub ca_lifetime: Duration,
    /// The lifetime of certificates.
    pub lifetime: Duration,
    /// How long a Secret stays as it is before the next step, whatever is reported: pods read it as files, which the kubelet
    /// refreshes when it pleases.
    pub settle: Duration,
    /// How long those are waited for that report nothing, and, where a new CA is asked for, proxies of Gateways.
    pub silent_timeout: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        Self {
            ca_lifetime: hours(10 * 365 * 24),
            lifetime: hours(120 * 24),
            settle: Duration::from_secs(600),
            silent_timeout: hours(24),
        }
    }
}

/// A CA whose key is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ca {
    /// Its certificate and key.
    pub pair: Pair,
    /// What its certificate says.
    pub certificate: Certificate,
}

impl Ca {
    /// What a pair says; none if it cannot be read.
    pub fn read(pair: Pair) -> Option<Ca> {
        let certificate = Certificate::first(&pair.certificate)?;
        Some(Ca { pair, certificate })
    }
}

/// The Secret of the CA, which nobody but the controller reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaSecret {
    /// The CA that signs; none if its key is not known.
    pub current: Option<Ca>,
    /// The CA that is to sign once all trust it.
    pub next: Option<Ca>,
    /// Whether somebody asks for a new CA.
    pub is_requested: bool,
    /// Whether the next CA was made because somebody asked for it.
    pub is_next_requested: bool,
}

/// Who a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The xDS server.
    Server,
    /// The Envoys of the shared fleet.
    Envoy,
}

impl Role {
    /// Both.
    pub const ALL: [Role; 2] = [Role::Server, Role::Envoy];
}

/// A Secret with a certificate and the CAs to trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafSecret {
    /// The CAs.
    pub bundle: Vec<Certificate>,
    /// The certificate and its key.
    pub pair: Pair,
    /// What the certificate says.
    pub leaf: Certificate,
    /// Since when it is as it is, in seconds since 1970.
    pub since: i64,
}

/// The Secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets {
    /// That of the CA.
    pub ca: Option<CaSecret>,
    /// That of the xDS server.
    pub server: Option<LeafSecret>,
    /// That of Envoys.
    pub envoy: Option<LeafSecret>,
    /// Whether somebody else makes one of the last two.
    pub is_foreign: bool,
}

impl Secrets {
    /// The Secret of a role.
    pub fn of(&self, role: Role) -> Option<&LeafSecret> {
        match role {
            Role::Server => self.server.as_ref(),
            Role::Envoy => self.envoy.as_ref(),
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write the Secret of the CA.
    WriteCa(Box<CaSecret>, &'static str),
    /// Write the Secret of a role.
    WriteLeaf(Role, Box<LeafSecret>, &'static str),
    /// Wait for replicas and proxies.
    Wait(Waiting, &'static str),
    /// Wait for a CA to be valid, from that time on, in seconds since 1970: the clock is behind, or was ahead when it was made.
    NotYetValid(i64),
    /// Nothing, until something is due.
    Idle,
    /// Nothing at all: somebody else makes the certificates.
    Foreign,
}

/// What is to be done next.
pub fn next(
    secrets: &Secrets,
    policy: &Policy,
    holders: &[CertificateHolders],
    namespace: &str,
    now: i64,
) -> Result<Step, IssueError> {
    Rotation { secrets, policy, holders, namespace, now }.next()
}

struct Rotation<'a> {
    secrets: &'a Secrets,
    policy: &'a Policy,
    holders: &'a [CertificateHolders],
    namespace: &'a str,
    now: i64,
}

impl Rotation<'_> {
    fn next(&self) -> Result<Step, IssueError> {
        if self.secrets.is_foreign {
            return Ok(Step::Foreign);
        }
        let ca = self.secrets.ca.clone().unwrap_or_default();
        if let Some(step) = self.new_ca(&ca)? {
            return Ok(step);
        }
        if let Some(step) = self.not_yet_valid(&ca) {
            return Ok(step);
        }
        if let Some(step) = self.trust(&ca)? {
            return Ok(step);
        }
        for role in Role::ALL {
            if let Some(step) = self.certificate(role, &ca)? {
                return Ok(step);
            }
        }
        Ok(match &ca.next {
            Some(next) => self.promote(&ca, next),
            None => self.forget(&ca),
        })
    }

    /// A CA, where there is none or it is to be replaced.
    fn new_ca(&self, ca: &CaSecret) -> Result<Option<Step>, IssueError> {
        // A next one that is not valid yet has signed nothing: whoever asks for a new CA gets another in its place.
        let is_replaceable = |next: &Ca| ca.is_requested && self.is_early(&next.certificate);
        let why = match &ca.current {
            _ if ca.next.as_ref().is_some_and(|next| !is_replaceable(next)) => return Ok(None),
            None => "a CA",
            Some(_) if ca.is_requested => "a new CA, as was asked for",
            Some(current) if self.is_early(&current.certificate) => return Ok(None),
            Some(current) if self.left(&current.certificate) < third(self.policy.ca_lifetime) => {
                "a new CA, since the current one expires"
            }
            Some(_) => return Ok(None),
        };
        let known = Role::ALL.iter().filter_map(|role| self.secrets.of(*role)).flat_map(|secret| &secret.bundle);
        let known: Vec<i64> = known.chain(ca.current.iter().map(|ca| &ca.certificate)).map(|it| it.expires).collect();
        let lifetime = self.lifetime(self.policy.ca_lifetime, &known);
        let made = Ca::read(Authority::new(self.time(), lifetime)?.pair());
        // Where nobody has a certificate yet there is nobody to wait for.
        let is_first = self.secrets.server.is_none() && self.secrets.envoy.is_none();
        let secret = if is_first && ca.current.is_none() {
            CaSecret { current: made, ..CaSecret::default() }
        } else {
            let is_next_requested = ca.is_requested;
            CaSecret { current: ca.current.clone(), next: made, is_requested: false, is_next_requested }
        };
        Ok(Some(Step::WriteCa(Box::new(secret), why)))
    }

    /// Whether there is no CA that is valid by this clock, so that nothing is signed.
    fn not_yet_valid(&self, ca: &CaSecret) -> Option<Step> {
        let known = || [&ca.current, &ca.next].into_iter().flatten().map(|ca| &ca.certificate);
        let is_any_valid = known().any(|ca| !self.is_early(ca));
        let begins = known().map(|ca| ca.begins).min().filter(|_| !is_any_valid)?;
        Some(Step::NotYetValid(begins))
    }

    /// Puts the CAs into the bundles, with a new certificate of the current one: by that a proxy shows that it has them.
    fn trust(&self, ca: &CaSecret) -> Result<Option<Step>, IssueError> {
        let wanted: Vec<&Certificate> =
            [&ca.next, &ca.current].into_iter().flatten().map(|ca| &ca.certificate).collect();
        for role in Role::ALL {
            let Some(secret) = self.secrets.of(role) else { continue };
            let is_first = secret.bundle.first() == wanted.first().copied();
            let has_all = wanted.iter().all(|ca| secret.bundle.contains(ca));
            // A clock that was set back: the time is counted anew.
            let is_late = secret.since > self.now;
            if is_first && has_all && !is_late {
                continue;
            }
            let others = secret.bundle.iter().filter(|ca| !wanted.contains(ca) && self.left(ca) > 0);
            let bundle = wanted.iter().copied().chain(others).cloned().collect();
            let mut secret = LeafSecret { bundle, since: self.now, ..secret.clone() };
            // A CA that has just become known to nobody else may not sign yet, nor one that is not valid yet.
            let signer = ca.current.as_ref().filter(|current| secret.leaf.is_signed_by(&current.certificate));
            let signer = signer.filter(|current| !self.is_early(&current.certificate));
            if let Some((pair, leaf)) =
                signer.map(|signer| self.issue(role, signer, Some(&secret))).transpose()?.flatten()
            {
                (secret.pair, secret.leaf) = (pair, leaf);
            }
            return Ok(Some(Step::WriteLeaf(role, Box::new(secret), "all CAs to trust")));
        }
        Ok(None)
    }

    /// A certificate for who has none, or one that expires, or one of another CA than the current one.
    fn certificate(&self, role: Role, ca: &CaSecret) -> Result<Option<Step>, IssueError> {
        let secret = self.secrets.of(role);
        // Without the key of the current CA only who has nothing gets one of the next; others trust that by now.
        let signer = match (&ca.current, secret) {
            (Some(current), _) if self.is_early(&current.certificate) => return Ok(None),
            (Some(current), _) => current,
            (None, None) => match &ca.next {
                Some(next) => next,
                None => return Ok(None),
            },
            (None, Some(_)) => return Ok(None),
        };
        let lifetime = seconds(self.policy.lifetime).min(self.left(&signer.certificate));
        let why = match secret {
            None => "a certificate",
            Some(secret) if !secret.leaf.is_signed_by(&signer.certificate) => "a certificate of the new CA",
            // Not again and again where the CA itself lasts no longer.
            Some(secret) => {
                let (left, third) = (self.left_of_leaf(&secret.leaf), third(self.policy.lifetime));
                match left < third && lifetime > left + third / 2 {
                    true => "a new certificate, since the current one expires",
                    false => return Ok(None),
                }
            }
        };
        let Some((pair, leaf)) = self.issue(role, signer, secret)? else { return Ok(None) };
        let bundle = match secret {
            Some(secret) => secret.bundle.clone(),
            None => self.bundle(ca),
        };
        let secret = LeafSecret { bundle, pair, leaf, since: self.now };
        Ok(Some(Step::WriteLeaf(role, Box::new(secret), why)))
    }

    /// A certificate of this CA, which expires at another time than the one before.
    fn issue(
        &self,
        role: Role,
        signer: &Ca,
        before: Option<&LeafSecret>,
    ) -> Result<Option<(Pair, Certificate)>, IssueError> {
        let lifetime = seconds(self.policy.lifetime).min(self.left(&signer.certificate));
        let known: Vec<i64> = before.iter().map(|secret| secret.leaf.expires).collect();
        let lifetime = self.lifetime(Duration::from_secs(u64::try_from(lifetime).unwrap_or_default()), &known);
        let authority = Authority::load(&signer.pair, self.time(), lifetime)?;
        let pair = match role {
            Role::Server => authority.server(self.namespace)?,
            Role::Envoy => authority.envoy(self.namespace, None)?,
        };
        let leaf = Certificate::first(&pair.certificate);
        Ok(leaf.map(|leaf| (pair, leaf)))
    }

    /// The CAs for somebody new: all that anybody trusts.
    fn bundle(&self, ca: &CaSecret) -> Vec<Certificate> {
        let known = [&ca.next, &ca.current].into_iter().flatten().map(|ca| &ca.certificate);
        let others = Role::ALL.iter().filter_map(|role| self.secrets.of(*role)).flat_map(|secret| &secret.bundle);
        let mut bundle: Vec<Certificate> = Vec::new();
        for ca in known.chain(others) {
            if !bundle.contains(ca) {
                bundle.push(ca.clone());
            }
        }
        bundle
    }

    /// Makes the next CA the current one once all trust it.
    fn promote(&self, ca: &CaSecret, next: &Ca) -> Step {
        if self.is_early(&next.certificate) {
            return Step::NotYetValid(next.certificate.begins);
        }
        let leaves = || Role::ALL.iter().filter_map(|role| self.secrets.of(*role)).map(|secret| &secret.leaf);
        let used: Vec<&Certificate> = match &ca.current {
            Some(current) => vec![&current.certificate],
            None => leaves().collect(),
        };
        let left = used.iter().map(|certificate| self.left(certificate)).min().unwrap_or_default();
        // Replicas do not take up the bundle with a certificate that is not valid yet, so they never report it; pods still get the time to.
        let is_urgent = left < URGENT.min(seconds(self.policy.ca_lifetime) / 10)
            || used.iter().any(|certificate| self.is_early(certificate));
        // Without the key of the current CA there was no certificate by which a proxy could show that it has the next one.
        let shown = ca.current.as_ref().and_then(|current| {
            let secret = self.secrets.of(Role::Envoy)?;
            secret.leaf.is_signed_by(&current.certificate).then_some(secret.leaf.expires)
        });
        // Whoever asks for a new CA may do so because the key of the current one has leaked: the rollout of one Gateway, whose owner may not
        // be the operator, does not keep it in use. Where the current one is gone there is none to keep.
        let is_requested = ca.is_requested || ca.is_next_requested || ca.current.is_none();
        let next_ca = next.certificate.expires;
        let waiting = Waiting::for_all(self.holders, |group| match (group.is_proxy, group.is_complete) {
            (true, false) => group.shows(shown),
            (true, true) if is_requested => group.trusts(next_ca).filter(|trusts| *trusts),
            _ => group.trusts(next_ca),
        });
        match self.wait(waiting, is_urgent) {
            // Nobody can connect with what has expired.
            Some(waiting) if left > 0 => Step::Wait(waiting, "replicas and proxies to trust the next CA"),
            _ => {
                let is_requested = ca.is_requested;
                let secret = CaSecret { current: Some(next.clone()), is_requested, ..CaSecret::default() };
                Step::WriteCa(Box::new(secret), "the next CA signs from now on")
            }
        }
    }

    /// Takes CAs out of the bundles whose certificates nobody presents any more.
    fn forget(&self, ca: &CaSecret) -> Step {
        let Some(current) = &ca.current else { return Step::Idle };
        let others = |secret: &LeafSecret| -> Vec<i64> {
            let others = secret.bundle.iter().filter(|ca| **ca != current.certificate);
            others.map(|ca| self.left(ca)).collect()
        };
        for role in Role::ALL {
            let Some(secret) = self.secrets.of(role) else { continue };
            let others = others(secret);
            if others.is_empty() {
                continue;
            }
            let expires = |role| self.secrets.of(role).map_or(0, |secret| secret.leaf.expires);
            let waiting = Waiting::for_all(self.holders, |group| {
                group.presents(expires(if group.is_proxy { Role::Envoy } else { Role::Server }))
            });
            match self.wait(waiting, false) {
                Some(waiting) if others.iter().any(|left| *left > 0) => {
                    return Step::Wait(waiting, "replicas and proxies to have certificates of the new CA");
                }
                _ => {
                    let bundle = vec![current.certificate.clone()];
                    let secret = LeafSecret { bundle, since: self.now, ..secret.clone() };
                    return Step::WriteLeaf(role, Box::new(secret), "no CA but the current one");
                }
            }
        }
        Step::Idle
    }

    /// Whether there is somebody to wait for. If it is urgent, only the usual time is waited.
    fn wait(&self, mut waiting: Waiting, is_urgent: bool) -> Option<Waiting> {
        let since = Role::ALL.iter().filter_map(|role| self.secrets.of(*role)).map(|secret| secret.since).max();
        let since = since.unwrap_or_default();
        let settled = since + seconds(self.policy.settle);
        waiting.until = settled;
        if self.now < settled {
            return Some(waiting);
        }
        let is_within_timeout = self.now < since + seconds(self.policy.silent_timeout);
        let waits = waiting.behind_count > 0 || waiting.silent_count > 0 && is_within_timeout;
        (waits && !is_urgent).then_some(waiting)
    }

    /// A lifetime after which nothing else expires: certificates are told apart by when they expire.
    fn lifetime(&self, lifetime: Duration, known: &[i64]) -> Duration {
        let shorter = (0..).map(|less| lifetime.saturating_sub(Duration::from_secs(less)));
        shorter.take(known.len() + 1).find(|it| !known.contains(&(self.now + seconds(*it)))).unwrap_or(lifetime)
    }

    /// How long it is until it expires.
    fn left(&self, certificate: &Certificate) -> i64 {
        certificate.expires - self.now
    }

    /// For how long a certificate that is no CA can be used: one that is not valid yet is renewed like one that has expired.
    fn left_of_leaf(&self, leaf: &Certificate) -> i64 {
        if self.is_early(leaf) { 0 } else { self.left(leaf) }
    }

    /// Whether it is not valid yet by this clock.
    fn is_early(&self, certificate: &Certificate) -> bool {
        certificate.begins > self.now
    }

    fn time(&self) -> std::time::SystemTime {
        UNIX_EPOCH + Duration::from_secs(u64::try_from(self.now).unwrap_or_default())
    }
}

fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

fn third(duration: Duration) -> i64 {
    seconds(duration) / 3
}
