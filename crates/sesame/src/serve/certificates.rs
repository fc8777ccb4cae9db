//! The certificates of xDS connections, issued and rotated by the controller itself.
//!
//! In: the Secrets of the CA, of the xDS server and of its Envoys. Out: the files that this replica serves with ([`files`]), a
//! report to the leader of the certificates that this replica and its proxies have ([`proxies`]), and, on the replica that
//! holds the lease, the next step of a rotation ([`certgen::rotation`]). Replicas read their Secret from the API server and not
//! from a mounted volume: there is nothing to mount before the first of them has made it, and no kubelet to wait for.
//!
//! An API server that does not answer changes nothing: the files stay as they are.

pub mod expiry;
mod files;
pub mod mounted;
mod proxies;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use certgen::rotation::{self, Certificate, Policy, Role, Step, Waiting};
use certgen::store::{self, Store};
use model::Code;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use replicas::{CertificateHolders, Replicas};
use source::cluster::rights::refusal;
use source::outage::{Outage, OutageEvent};
use status::Leadership;
use tokio::sync::watch;
use tokio::time::{sleep, timeout_at};
use tracing::{info, warn};
use xds::{Server, TlsFiles};

use crate::control::now;

/// How often Secrets are read, and how often before this replica has its certificate.
const INTERVAL: Duration = Duration::from_secs(10);
const FIRST: Duration = Duration::from_millis(500);
/// How long a request to the API server may take.
const REQUEST: Duration = Duration::from_secs(20);
/// How many Secrets are written in a row before their effects are looked at.
const WRITES: usize = 4;

/// How certificates are issued.
#[derive(Clone, Debug)]
pub struct Issuing {
    /// The folder for the files of this replica.
    pub dir: PathBuf,
    /// When they are renewed.
    pub policy: Policy,
}

impl Issuing {
    /// The files of this replica.
    pub fn files(&self) -> TlsFiles {
        let file = |name: &str| self.dir.join(name);
        TlsFiles { ca: file("ca.crt"), certificate: file("tls.crt"), key: file("tls.key") }
    }
}

/// `sesame_xds_certificates_behind`.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    behind: Gauge,
}

impl Metrics {
    /// Adds it to a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "sesame_xds_certificates_behind",
            "Replicas and proxies that a rotation of the certificates of xDS connections waits for, as known to the leader",
            self.behind.clone(),
        );
    }
}

/// Issues certificates.
pub struct Issuer {
    /// How.
    pub issuing: Issuing,
    /// The Secrets.
    pub store: Store,
    /// The name of this replica.
    pub replica: String,
    /// Whether this replica writes.
    pub leadership: Leadership,
    /// Where reports go.
    pub replicas: Replicas,
    /// The server whose proxies are asked which certificates they have.
    pub server: Server,
    /// The port on which they are asked.
    pub stats_port: u16,
    /// What is measured.
    pub metrics: Metrics,
    /// Set when there are files to serve with.
    pub is_there: watch::Sender<bool>,
    /// What the first of them wait for.
    pub waits_for: watch::Sender<Option<String>>,
}

impl Issuer {
    /// Works until it is dropped.
    pub async fn run(self) {
        let mut files = files::Files::new(self.issuing.files());
        self.is_there.send_replace(files.are_usable());
        let (mut outage, mut logged) = (Outage::default(), LastLogged::default());
        let mut leader = self.leadership.watch();
        loop {
            let worked = self.round(&mut files, &mut logged).await;
            self.waits_for.send_replace(Some(match (&worked, files.refusal()) {
                (Err(why), _) => why.clone(),
                (Ok(()), Some(why)) => {
                    format!("those in the Secret {} cannot be used: {why}", store::name(Role::Server))
                }
                (Ok(()), None) if logged.is_foreign => {
                    "the Secrets are not managed by Sesame, so their issuer has to write them".to_owned()
                }
                (Ok(()), None) if self.leadership.is_leader() => {
                    "this replica holds the lease and is writing them".to_owned()
                }
                (Ok(()), None) => {
                    "the holder of the lease, which is another replica, writes them to the Secrets".to_owned()
                }
            }));
            let event = match &worked {
                Ok(()) => outage.worked(Instant::now()),
                Err(_) => outage.failed(Instant::now()),
            };
            match (&worked, event) {
                (Err(why), Some(OutageEvent::Started | OutageEvent::Ongoing(_))) => {
                    warn!("failed to renew the certificates of xDS connections, retrying: {why}");
                }
                (_, Some(OutageEvent::Ended(after))) => {
                    info!(?after, "the Secrets of xDS certificates can be read again")
                }
                _ => {}
            }
            let pause = if *self.is_there.borrow() { INTERVAL.min(self.issuing.policy.settle / 4) } else { FIRST };
            tokio::select! {
                () = sleep(pause.max(FIRST)) => {}
                changed = leader.changed() => if changed.is_err() { return },
            }
        }
    }

    async fn round(&self, files: &mut files::Files, logged: &mut LastLogged) -> Result<(), String> {
        if self.leadership.is_leader() {
            self.lead(logged).await?;
        } else {
            self.metrics.behind.set(0);
        }
        let read = timeout(self.store.server()).await?;
        if let Some((pair, bundle)) = read
            && files.take(&pair, &bundle)
        {
            info!(expires = %expiry::date(Certificate::first(&pair.certificate).map_or(0, |it| it.expires)),
                "reloaded the certificates of the xDS server from the Secret");
        }
        if files.are_usable() {
            self.is_there.send_if_modified(|there| !std::mem::replace(there, true));
        }
        self.report(files).await;
        Ok(())
    }

    /// Tells the leader which certificates this replica and its proxies have. Proxies are asked only where it matters: while
    /// there is more than one CA.
    async fn report(&self, files: &files::Files) {
        let Some((bundle, leaf)) = files.certificates() else { return };
        let cas: Vec<i64> = bundle.iter().map(|ca| ca.expires).collect();
        let mut holders = vec![CertificateHolders {
            names: vec![self.replica.clone()],
            count: 1,
            is_proxy: false,
            cas: cas.clone(),
            is_complete: true,
            leaf: Some(leaf.expires),
        }];
        if bundle.len() > 1 {
            holders.extend(proxies::ask(&self.server, self.stats_port, &cas).await);
        }
        self.replicas.report_certificates(holders);
    }

    /// Takes the next steps, as far as nobody has to be waited for.
    async fn lead(&self, logged: &mut LastLogged) -> Result<(), String> {
        if !logged.has_cache_key && timeout(self.store.create_cache_key()).await? {
            info!("wrote the Secret sesame-cache-key");
        }
        logged.has_cache_key = true;
        for _ in 0..WRITES {
            let stored = timeout(self.store.read()).await?;
            let holders: Vec<_> = self.replicas.certificates().into_iter().map(holders).collect();
            let secrets = stored.secrets();
            let step = rotation::next(&secrets, &self.issuing.policy, &holders, self.store.namespace(), now());
            let step = step.map_err(|error| format!("{:#}", anyhow::Error::new(error)))?;
            let waiting = match &step {
                Step::Wait(waiting, _) => waiting.behind_count + waiting.silent_count,
                _ => 0,
            };
            self.metrics.behind.set(i64::try_from(waiting).unwrap_or(i64::MAX));
            for name in stored.unreadable().into_iter().filter(|_| step != Step::Foreign) {
                warn!("Secret {name} has no readable contents; rewriting it");
            }
            let (name, why) = match &step {
                Step::WriteCa(_, why) => (store::CA, why),
                Step::WriteLeaf(role, _, why) => (store::name(*role), why),
                Step::Wait(..) | Step::NotYetValid(_) | Step::Idle | Step::Foreign => {
                    logged.nothing_written(&step, &secrets);
                    return Ok(());
                }
            };
            let write = async {
                match &step {
                    Step::WriteCa(ca, _) => self.store.write_ca(&stored, ca).await,
                    Step::WriteLeaf(role, leaf, _) => self.store.write_leaf(&stored, *role, leaf).await,
                    Step::Wait(..) | Step::NotYetValid(_) | Step::Idle | Step::Foreign => Ok(()),
                }
            };
            // After that time another replica may write.
            let Some(permit) = self.leadership.permit() else { return Ok(()) };
            let write = timeout_at(permit.until().into(), write).await;
            let write = write.map_err(|_| format!("Secret {name}: no answer while the lease was held"))?;
            match write {
                Ok(()) => info!(secret = name, "wrote {why}"),
                // Somebody else was faster; what there is now is read next time.
                Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => return Ok(()),
                Err(error) => return Err(format!("Secret {name}: {}", refusal(&error))),
            }
        }
        Ok(())
    }
}

/// What was logged last and need not be logged again.
#[derive(Default)]
struct LastLogged {
    has_cache_key: bool,
    is_foreign: bool,
    last: String,
}

impl LastLogged {
    fn once(&mut self, text: String) -> bool {
        let is_new = self.last != text;
        self.last = text;
        is_new
    }

    fn nothing_written(&mut self, step: &Step, secrets: &rotation::Secrets) {
        self.is_foreign = *step == Step::Foreign;
        match step {
            Step::Wait(waiting, what) => self.waiting(waiting, what),
            Step::NotYetValid(begins) => self.not_yet_valid(*begins),
            Step::Foreign => self.foreign(),
            Step::WriteCa(..) | Step::WriteLeaf(..) | Step::Idle => self.nothing_to_do(secrets),
        }
    }

    fn waiting(&mut self, waiting: &Waiting, what: &str) {
        let is_late = now() > waiting.until;
        let names = |names: &[String], count: usize| match count {
            0 => String::new(),
            count => format!("{count} ({}{})", names.join(", "), if names.len() < count { ", …" } else { "" }),
        };
        let (behind, silent) =
            (names(&waiting.behind, waiting.behind_count), names(&waiting.silent, waiting.silent_count));
        if !self.once(format!("{what} {is_late} {behind} {silent}")) {
            return;
        }
        if is_late {
            warn!(behind, silent, "the rotation of certificates still waits for {what}");
        } else {
            info!(behind, silent, until = %expiry::date(waiting.until), "the rotation of certificates waits for {what}");
        }
    }

    fn nothing_to_do(&mut self, secrets: &rotation::Secrets) {
        let ends = [Role::Server, Role::Envoy].map(|role| secrets.of(role).map_or(0, |secret| secret.leaf.expires));
        let [server, envoy] = ends.map(expiry::date);
        if self.once(format!("{server} {envoy}")) {
            info!(%server, %envoy, "certificates of xDS connections are valid");
        }
    }

    fn not_yet_valid(&mut self, begins: i64) {
        if self.once(format!("not valid before {begins}")) {
            let (code, begins) = (Code::XdsCaNotYetValid, expiry::date(begins));
            warn!(%code, "{code}: {}: it is valid from {begins} ({})", code.title(), code.help());
        }
    }

    fn foreign(&mut self) {
        if self.once("foreign".to_owned()) {
            info!("the Secrets of xDS connections are not managed by Sesame; they are read and never written");
        }
    }
}

fn holders(reported: CertificateHolders) -> rotation::CertificateHolders {
    let CertificateHolders { names, count, is_proxy, cas, is_complete, leaf } = reported;
    rotation::CertificateHolders { names, count, is_proxy, cas, is_complete, leaf }
}

async fn timeout<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, String> {
    let answer = tokio::time::timeout(REQUEST, request).await;
    let answer = answer.map_err(|_| format!("no answer from the API server in {REQUEST:?}"))?;
    answer.map_err(|error| refusal(&error).into_owned())
}
