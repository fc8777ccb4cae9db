//! The task that acquires the lease, renews it and releases it.

use super::{Leadership, Observation, Settings, SettingsError};
use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::api::{Api, ObjectMeta, PostParams};
use source::{
    cluster::{Connection, rights},
    outage::{Outage, OutageEvent},
};
use std::{
    pin::pin,
    time::{Duration, Instant},
};
use tokio::{
    sync::watch,
    time::{error::Elapsed, sleep_until, timeout, timeout_at},
};
use tracing::{debug, info, warn};

/// How long releasing the lease may take; the others acquire it after its duration anyway.
const RELEASE: Duration = Duration::from_secs(5);

/// The annotation of the lease with the address at which the other replicas reach its holder.
pub const ADDRESS: &str = "projectsesame.io/replica-address";

/// Who holds the lease, as far as we know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Holder {
    /// Nobody that is known.
    #[default]
    Unknown,
    /// This replica.
    Ourselves,
    /// Another, at this address if it says one.
    Another(Option<String>),
}

/// One candidate.
#[derive(Debug)]
pub struct Election {
    api: Api<Lease>,
    settings: Settings,
    leadership: Leadership,
    observation: Option<Observation>,
    holder: watch::Sender<Holder>,
    connection: Connection,
    /// The API server answers and denies the lease.
    refusal: Outage,
}

/// The state of the lease after a try.
enum LeaseState {
    Held,
    /// Held by another replica, at this address.
    HeldByOther(Option<String>),
}

impl Election {
    /// A candidate for a lease. The client should be one whose requests do not queue behind others'.
    pub fn new(client: kube::Client, settings: Settings) -> Result<Self, SettingsError> {
        settings.check()?;
        let api = Api::namespaced(client, &settings.namespace);
        let (leadership, holder) = (Leadership::contested(), watch::Sender::default());
        let (connection, refusal) = Default::default();
        Ok(Self { api, settings, leadership, observation: None, holder, connection, refusal })
    }

    /// The same; failures to reach the API server are reported there, together with those of others.
    pub fn reporting(self, connection: Connection) -> Self {
        Self { connection, ..self }
    }

    /// What writers ask for a permit.
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Who holds the lease: changes when it does, or when its holder is reached elsewhere.
    pub fn holder(&self) -> watch::Receiver<Holder> {
        self.holder.subscribe()
    }

    fn publish(&self, holder: Holder) {
        self.holder.send_if_modified(|known| std::mem::replace(known, holder.clone()) != holder);
    }

    /// Acquires and renews until `shutdown`, then releases the lease. It never gives up before.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) {
        let mut shutdown = pin!(shutdown);
        loop {
            let turn = async {
                let rest = self.turn().await;
                sleep_until(rest.into()).await;
            };
            tokio::select! {
                () = &mut shutdown => break,
                () = turn => self.expire(),
            }
        }
        self.release().await;
    }

    /// Tries once; says when to try again.
    async fn turn(&mut self) -> Instant {
        let begun = Instant::now();
        let held_until = self.leadership.until();
        // A request that hangs must not keep us from noticing that the lease is over.
        let limit = held_until.unwrap_or(begun + self.settings.renew_deadline);
        let result = timeout_at(limit.into(), self.acquire_or_renew()).await;
        self.note(&result);
        let mut is_known = true;
        match result {
            Ok(Ok((LeaseState::Held, sent))) => {
                self.leadership.hold(sent + self.settings.renew_deadline);
                self.publish(Holder::Ourselves);
            }
            Ok(Ok((LeaseState::HeldByOther(address), _))) => {
                self.leadership.lose();
                self.publish(Holder::Another(address));
            }
            Ok(Err(_)) | Err(_) => is_known = false,
        }
        let next = Instant::now() + self.settings.retry_period;
        match (self.leadership.until(), &self.observation) {
            (Some(until), _) => next.min(until),
            (None, Some(observation)) if is_known => {
                next.min(observation.free_at().max(Instant::now() + self.settings.retry_period / 10))
            }
            (None, _) => next,
        }
    }

    /// Logs failed tries: the first, one a minute while they last, and when they are over.
    fn note<T>(&mut self, result: &Result<kube::Result<T>, Elapsed>) {
        let lease = format!("{}/{}", self.settings.namespace, self.settings.name);
        let Ok(result) = result else {
            return self.connection.failed(&format!("timed out acquiring or renewing leader lease {lease}"));
        };
        if !self.connection.note(result) {
            return;
        }
        let (now, error) = (Instant::now(), result.as_ref().err());
        let event = match error {
            Some(_) => self.refusal.failed(now),
            None => self.refusal.worked(now),
        };
        let (error, server) = (error.map(rights::refusal).unwrap_or_default(), self.connection.address());
        match event {
            Some(OutageEvent::Started) => {
                warn!("Failed to acquire or renew leader lease {lease} at {server}: {error}; retrying");
            }
            Some(OutageEvent::Ongoing(time)) => {
                warn!("Still failing to acquire or renew leader lease {lease} at {server} after {time:.0?}: {error}");
            }
            Some(OutageEvent::Ended(time)) => info!("Leader lease {lease} is available again after {time:.0?}"),
            None => {}
        }
    }

    /// Stops being the leader when the lease has run out.
    fn expire(&self) {
        if self.leadership.until().is_some_and(|until| until <= Instant::now()) {
            self.leadership.lose();
            self.publish(Holder::Unknown);
        }
    }

    /// Reads the lease, and acquires or renews it if it is free or ours; returns when the request was sent that others count
    /// from.
    async fn acquire_or_renew(&mut self) -> kube::Result<(LeaseState, Instant)> {
        loop {
            let seen = self.api.get_opt(&self.settings.name).await?;
            let sent = Instant::now();
            let wrote = match seen {
                None => self.api.create(&PostParams::default(), &self.renewed(None)).await,
                Some(lease) => {
                    let observation =
                        Observation::next(self.observation.take(), lease.spec.clone().unwrap_or_default(), sent);
                    let ours = observation.is_held_by(&self.settings.identity);
                    let free = observation.free_at() <= sent;
                    self.observation = Some(observation);
                    if !ours && !free {
                        let annotations = lease.metadata.annotations.as_ref();
                        let address = annotations.and_then(|annotations| annotations.get(ADDRESS)).cloned();
                        return Ok((LeaseState::HeldByOther(address), sent));
                    }
                    self.api.replace(&self.settings.name, &PostParams::default(), &self.renewed(Some(lease))).await
                }
            };
            match wrote {
                Ok(_) => return Ok((LeaseState::Held, sent)),
                Err(kube::Error::Api(status)) if status.is_already_exists() || status.is_conflict() => {
                    debug!("leader lease was updated by another replica at the same time; retrying");
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The lease with this replica as its holder from now on.
    fn renewed(&self, lease: Option<Lease>) -> Lease {
        let new = || Lease {
            metadata: ObjectMeta { name: Some(self.settings.name.clone()), ..ObjectMeta::default() },
            spec: None,
        };
        let mut lease = lease.unwrap_or_else(new);
        let annotations = lease.metadata.annotations.get_or_insert_default();
        match &self.settings.address {
            Some(address) => _ = annotations.insert(ADDRESS.to_owned(), address.clone()),
            None => _ = annotations.remove(ADDRESS),
        }
        let spec = lease.spec.get_or_insert_default();
        let now = Some(MicroTime(Timestamp::now()));
        if spec.holder_identity.as_deref() != Some(&self.settings.identity) {
            spec.lease_transitions = Some(spec.lease_transitions.map_or(0, |count| count.saturating_add(1)));
            spec.acquire_time.clone_from(&now);
            spec.holder_identity = Some(self.settings.identity.clone());
        }
        // The API counts whole seconds: others may wait longer than they must, never shorter.
        let seconds = self.settings.lease_duration.as_secs_f64().ceil();
        spec.lease_duration_seconds = Some(seconds as i32);
        spec.renew_time = now;
        lease
    }

    /// Stops writing and releases the lease, so that another replica can acquire it at once.
    async fn release(self) {
        let until = self.leadership.until();
        self.leadership.lose();
        let released = async {
            // Requests end by themselves before the lease does.
            timeout_at(until.unwrap_or_else(Instant::now).into(), self.leadership.idle()).await.ok()?;
            let mut lease = self.api.get_opt(&self.settings.name).await.ok()??;
            let spec: &mut LeaseSpec = lease.spec.as_mut()?;
            if spec.holder_identity.as_deref() == Some(&*self.settings.identity) {
                spec.holder_identity = Some(String::new());
                spec.lease_duration_seconds = Some(1);
                spec.renew_time = Some(MicroTime(Timestamp::now()));
                self.api.replace(&self.settings.name, &PostParams::default(), &lease).await.ok()?;
            }
            Some(())
        };
        if timeout(RELEASE.max(self.settings.retry_period), released).await != Ok(Some(())) {
            debug!("leader lease was not released; it expires by itself");
        }
    }
}
