//! The pipeline as others use it: put changes in, take outputs out.

use crate::{
    certificates::{self, SelfSigned, Unsigned},
    client_trust,
    dialects::gateway::{FleetStates, GatewayFleets},
    emissary, equal_hosts, extensions,
    facts::{self, Facts},
    fleet_resources, holders, hosts, isolation,
    jwks::{self, FetchSpec, JwksRefs, JwksStates},
    large, listeners, membership,
    object_resources::{self, ObjectResources, ServedObject},
    objects, packing, partition, ports,
    quarantine::{self, Quarantine},
    redirects,
    resources::{self, FleetChanges, LaneChanges},
    secret_refs::{self, FetchResult, FetchResults, SecretRefs},
    services,
    settings::{self, FleetSettings, Fleets, Settings},
    shared_routes, slots,
    tracers::{self, Tracers},
    translations::{self, Contributed},
    validity::{self, Clock},
    verdicts::{self, Verdicts},
    withheld::{self, Quarantined},
};
use dialect_gateway::fleet::{FleetState, OwnFleet};
use engine::{Divergence, Engine, Finished, Job, Offloading, Progress, Replaced};
use kinds::Object;
use model::{
    CertificateRef, FleetId, Host, ObjectRef, Translation, Verdict,
    jwt::{JwksState, RemoteJwks},
    status::StatusFacts,
    tls::KeyPair,
};
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
    time::Duration,
};

/// How long the pipeline works before it sees whether endpoints have changed meanwhile.
pub const SLICE: Duration = Duration::from_millis(10);

/// What came out for one fleet since the last time.
#[derive(Default)]
pub struct FleetOutput {
    /// What its proxies are to be told.
    pub xds: xds::Changes,
    /// All that this replica withholds because its proxies refused it, if that has changed: for other replicas.
    pub withheld: Option<Vec<Quarantined>>,
    /// Resources of which the pipeline wants to hear whether they are taken or refused: for [`xds::AckMonitor::expect`], after
    /// they have been published.
    pub probes: Vec<(xds::Kind, xds::Name)>,
}

/// What came out since the last time.
#[derive(Default)]
pub struct Output {
    /// What proxies of the shared fleet are to be told.
    pub xds: xds::Changes,
    /// What came out for each other fleet.
    pub fleets: BTreeMap<FleetId, FleetOutput>,
    /// The objects about which there is something new to say; nothing for those that are no longer ours.
    pub verdicts: Vec<(ObjectRef, Option<Arc<Vec<Verdict>>>)>,
    /// What the status of objects says besides verdicts, where that has changed; nothing for those about which there are no
    /// such facts any more.
    pub facts: Vec<(ObjectRef, Option<Arc<StatusFacts>>)>,
    /// What carries each object, where that has changed; nothing for those that are no longer ours.
    pub object_resources: Vec<(ObjectRef, Option<Arc<ServedObject>>)>,
    /// All that this replica withholds because proxies of the shared fleet refused it, if that has changed: for other replicas.
    pub withheld: Option<Vec<Quarantined>>,
    /// Resources of the shared fleet of which the pipeline wants to hear whether they are taken or refused: for
    /// [`xds::AckMonitor::expect`], after they have been published.
    pub probes: Vec<(xds::Kind, xds::Name)>,
}

impl Output {
    /// What came out for a fleet.
    pub fn take_fleet(&mut self, fleet: &FleetId) -> FleetOutput {
        match fleet {
            FleetId::Shared => FleetOutput {
                xds: std::mem::take(&mut self.xds),
                withheld: self.withheld.take(),
                probes: std::mem::take(&mut self.probes),
            },
            FleetId::Named(_) => self.fleets.remove(fleet).unwrap_or_default(),
        }
    }

    fn add(&mut self, changes: FleetChanges) {
        for (fleet, changes) in changes {
            let into = match fleet {
                FleetId::Shared => &mut self.xds,
                FleetId::Named(_) => &mut self.fleets.entry(fleet).or_default().xds,
            };
            // Removals are done first: what came before in the same output must not come back after it.
            if !into.upserts.is_empty() && !changes.removes.is_empty() {
                let removed: HashSet<(xds::Kind, &str)> =
                    changes.removes.iter().map(|(kind, name)| (*kind, &**name)).collect();
                into.upserts.retain(|resource| !removed.contains(&(resource.kind, &*resource.name)));
            }
            into.upserts.extend(changes.upserts);
            into.removes.extend(changes.removes);
        }
    }
}

/// The fleet as the xDS server names it.
pub fn xds_fleet(fleet: &FleetId) -> xds::Fleet {
    match fleet {
        FleetId::Shared => xds::Fleet::Shared,
        FleetId::Named(name) => xds::Fleet::named(&name.namespace, &name.name),
    }
}

/// How the set of wanted Secrets changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretRefChanges {
    /// Referred to now and not before, whether they exist or not.
    pub new: Vec<ObjectRef>,
    /// Not asked for any more.
    pub gone: Vec<ObjectRef>,
}

/// Every station in one engine.
pub struct Pipeline {
    engine: Engine,
    quarantine: Quarantine,
    early: LaneChanges,
    unsigned: BTreeSet<Host>,
    clock: Clock,
}

impl Pipeline {
    /// A pipeline with no objects in it.
    pub fn new(settings: &Settings) -> Self {
        let mut declaration = engine::Pipeline::new();
        settings::declare(&mut declaration);
        withheld::declare(&mut declaration);
        objects::declare(&mut declaration);
        services::declare(&mut declaration);
        certificates::declare(&mut declaration);
        validity::declare_input(&mut declaration);
        secret_refs::declare_results(&mut declaration);
        extensions::declare(&mut declaration, settings.fetched_secrets);
        jwks::declare_states(&mut declaration);
        translations::declare(&mut declaration, settings);
        extensions::declare_in_use(&mut declaration);
        secret_refs::declare(&mut declaration);
        jwks::declare(&mut declaration);
        tracers::declare(&mut declaration);
        ports::declare(&mut declaration);
        resources::declare_lane(&mut declaration);
        membership::declare_clusters(&mut declaration);
        shared_routes::declare(&mut declaration);
        isolation::declare(&mut declaration);
        hosts::declare(&mut declaration, settings);
        certificates::declare_unsigned(&mut declaration);
        validity::declare(&mut declaration);
        equal_hosts::declare(&mut declaration, settings);
        packing::declare(&mut declaration, settings);
        redirects::declare(&mut declaration, settings);
        membership::declare_secrets(&mut declaration);
        resources::declare(&mut declaration, settings);
        client_trust::declare(&mut declaration);
        holders::declare(&mut declaration);
        listeners::declare(&mut declaration, settings);
        fleet_resources::declare(&mut declaration);
        slots::declare(&mut declaration);
        quarantine::declare(&mut declaration);
        verdicts::declare(&mut declaration);
        emissary::annotation_verdicts::declare(&mut declaration);
        facts::declare(&mut declaration);
        object_resources::declare(&mut declaration, settings);
        let (quarantine, early, unsigned, clock) = Default::default();
        let mut engine = declaration.build();
        settings::set(&mut engine, settings);
        Self { engine, quarantine, early, unsigned, clock }
    }

    /// Takes other settings. How resources are packed, how certificates come, whether Secrets are fetched and what is spoiled for
    /// tests stays as it was at the beginning; everything that depends on the rest is worked on, and nothing else.
    pub fn set_settings(&mut self, settings: &Settings) {
        settings::set(&mut self.engine, settings);
    }

    /// Takes the settings of a fleet, or nothing when it is gone.
    pub fn set_fleet(&mut self, fleet: &FleetId, settings: Option<FleetSettings>) {
        match settings {
            Some(settings) => _ = self.engine.set::<Fleets>(fleet, settings),
            None => _ = self.engine.remove::<Fleets>(fleet),
        }
    }

    /// The fleets that Gateways have of their own, where that has changed since the last time; nothing for those that have none any
    /// more. Whoever provisions proxies gives the new ones their settings by [`Self::set_fleet`].
    pub fn gateway_fleets(&mut self) -> Vec<(ObjectRef, Option<Arc<OwnFleet>>)> {
        let changes = self.engine.changes::<GatewayFleets>();
        let set = changes.set.into_iter().map(|(gateway, fleet)| (gateway, Some(fleet)));
        set.chain(changes.gone.into_iter().map(|gateway| (gateway, None))).collect()
    }

    /// Takes what is known of the fleet of a Gateway, or nothing when it is gone.
    pub fn set_fleet_state(&mut self, gateway: &ObjectRef, state: Option<FleetState>) {
        match state {
            Some(state) => _ = self.engine.set::<FleetStates>(gateway, state),
            None => _ = self.engine.remove::<FleetStates>(gateway),
        }
    }

    /// Takes a change of one object: its new form, or nothing when it is gone.
    pub fn put(&mut self, key: &ObjectRef, object: Option<Object>) {
        match object {
            Some(object) => objects::set(&mut self.engine, key, &object),
            None => objects::remove(&mut self.engine, key),
        }
    }

    /// Takes a translation that is not made of an object here, or nothing when it is gone: of a dialect elsewhere, or of a test.
    /// The kind of the key must be none that a dialect here has.
    pub fn contribute(&mut self, key: &ObjectRef, translation: Option<Translation>) {
        match translation {
            Some(translation) => _ = self.engine.set::<Contributed>(key, translation.sorted()),
            None => _ = self.engine.remove::<Contributed>(key),
        }
    }

    /// Takes what proxies of the shared fleet made of a resource. What they refused is withheld until its objects change: proxies that have an
    /// earlier version keep it, others get a 503 with a reason in its place, and the objects get a verdict.
    pub fn on_outcome(&mut self, outcome: &xds::ResourceOutcome) {
        self.on_outcome_in(&FleetId::Shared, outcome);
    }

    /// The same for any fleet.
    pub fn on_outcome_in(&mut self, fleet: &FleetId, outcome: &xds::ResourceOutcome) {
        self.quarantine.on_outcome(&mut self.engine, fleet, outcome);
    }

    /// Takes all that other replicas withhold in the shared fleet, in place of what they did before.
    pub fn withhold(&mut self, others: Vec<Quarantined>) {
        self.withhold_in(&FleetId::Shared, others);
    }

    /// The same for any fleet.
    pub fn withhold_in(&mut self, fleet: &FleetId, others: Vec<Quarantined>) {
        self.quarantine.share(&mut self.engine, fleet, others);
    }

    /// Withholds resources of a type in the shared fleet, or hosts of those that many share, because all of that type together have
    /// `excess` bytes more than `limit`: the largest of the namespaces that have the most. The objects get a verdict, everything else can be
    /// published. Says whether that changed anything: what is computed on another thread is withheld when that is done.
    pub fn shed(&mut self, kind: xds::Kind, excess: usize, limit: usize) -> bool {
        self.shed_in(&FleetId::Shared, kind, excess, limit)
    }

    /// The same for any fleet.
    pub fn shed_in(&mut self, fleet: &FleetId, kind: xds::Kind, excess: usize, limit: usize) -> bool {
        self.quarantine.shed(&mut self.engine, fleet, kind, excess, limit)
    }

    /// Lets go of what was withheld for its size and fits into the room that there is by now; says whether there was any.
    pub fn readmit(&mut self, room: impl Fn(xds::Kind) -> usize) -> bool {
        self.readmit_in(|_, kind| room(kind))
    }

    /// The same, where each fleet has a room of its own.
    pub fn readmit_in(&mut self, room: impl Fn(&FleetId, xds::Kind) -> usize) -> bool {
        self.quarantine.readmit(&mut self.engine, room)
    }

    /// What is withheld for its size although there is no object to tell, in words: a listener, which all share.
    pub fn unreported(&self) -> Option<String> {
        self.quarantine.unreported()
    }

    /// Works for one slice. While more waits, endpoints and clusters come out, so that a long batch holds up no endpoint;
    /// the rest comes out together, and removals with it, when nothing waits and [`Self::finish`] is asked.
    pub fn step(&mut self, output: &mut Output) -> Progress {
        self.step_for(SLICE, output)
    }

    /// The same for a slice of any length; at least one row is computed.
    pub fn step_for(&mut self, slice: Duration, output: &mut Output) -> Progress {
        let progress = self.engine.run(slice);
        if !self.engine.is_settled() {
            let _drained = self.engine.drain_lane(SLICE);
            let mut changes = FleetChanges::default();
            resources::lane_changes(&mut self.engine, &mut self.early, &mut changes);
            output.add(changes);
        }
        progress
    }

    /// How the set of wanted Secrets has changed since the last time.
    ///
    /// Whoever brings Secrets only when they are wanted ([`Settings::fetched_secrets`]) brings the new ones, and says by
    /// [`Self::set_fetch_result`] what became of each, there or not. Until then they are pending: objects that refer to them keep what
    /// they had, and those that had nothing are not served yet.
    pub fn secret_refs(&mut self) -> SecretRefChanges {
        let wanted = self.engine.changes::<SecretRefs>();
        SecretRefChanges { new: wanted.set.into_iter().map(|(id, _)| id).collect(), gone: wanted.gone }
    }

    /// The servers whose keys are wanted, with how to fetch them, where that has changed since the last time; nothing for those
    /// that are not wanted any more. Whoever fetches says by [`Self::set_jwks`] what came of it.
    pub fn jwks_refs(&mut self) -> Vec<(Arc<RemoteJwks>, Option<Arc<FetchSpec>>)> {
        let changes = self.engine.changes::<JwksRefs>();
        let set = changes.set.into_iter().map(|(source, spec)| (source, Some(spec)));
        set.chain(changes.gone.into_iter().map(|source| (source, None))).collect()
    }

    /// Takes what is known of the keys of a server; nothing when they are not wanted any more. Until something is known, no token of
    /// the providers that have these keys is good.
    pub fn set_jwks(&mut self, source: &Arc<RemoteJwks>, state: Option<JwksState>) {
        match state {
            Some(state) => _ = self.engine.set::<JwksStates>(source, state),
            None => _ = self.engine.remove::<JwksStates>(source),
        }
    }

    /// Takes what time it is, in seconds since 1970, once nothing waits; says whether there is something to work on because
    /// of it. Without a time no certificate is out of date.
    pub fn set_time(&mut self, now: i64) -> bool {
        self.clock.set(&mut self.engine, now)
    }

    /// When [`Self::set_time`] is to be called again: when the next certificate begins or ceases to be valid.
    pub fn time_due(&self) -> Option<i64> {
        self.clock.due()
    }

    /// Works until nothing waits, at a time.
    pub fn settle_at(&mut self, now: i64) -> Output {
        self.engine.settle();
        self.set_time(now);
        self.settle()
    }

    /// Takes what became of a wanted Secret; nothing when it is not wanted any more.
    pub fn set_fetch_result(&mut self, id: &ObjectRef, result: Option<FetchResult>) {
        match result {
            Some(result) => _ = self.engine.set::<FetchResults>(id, result),
            None => _ = self.engine.remove::<FetchResults>(id),
        }
    }

    /// Whether what there is to say about an object depends on a Secret that has not been read yet, on proxies of its own of which
    /// nothing is known yet, or is still computed on another thread.
    pub fn is_pending(&self, key: &ObjectRef) -> bool {
        self.engine.is_pending::<Verdicts>(key)
            || self.engine.is_pending::<Facts>(key)
            || large::is_computing(&self.engine, key)
    }

    /// Which rows [`Self::step`] leaves to [jobs](Self::next_job) from now on. While any are, what one edit reaches is worked off
    /// [in parts](Self::admit), too.
    pub fn set_offloading(&mut self, offloading: Offloading) {
        self.engine.set_offloading(offloading);
        self.engine.limit_fan_out(match offloading {
            Offloading::Off => None,
            Offloading::Large => Some(partition::AT_ONCE),
            Offloading::All => Some(1),
        });
    }

    /// How many [partitions](partition) wait because an edit reached many: nothing waits for them.
    pub fn backlog(&self) -> usize {
        self.engine.backlog()
    }

    /// Works on so many of these with the next [steps](Self::step).
    pub fn admit(&mut self, partitions: usize) {
        self.engine.admit(partitions);
    }

    /// The computation of a large row, for another thread. It makes progress only while the tables are [shared](Self::share_tables).
    pub fn next_job(&mut self) -> Option<Job> {
        self.engine.next_job()
    }

    /// Takes what came of a job. What it replaces is best dropped on another thread, too.
    pub fn finish_job(&mut self, finished: Finished) -> Replaced {
        self.engine.finish(finished)
    }

    /// Gives up on all jobs: their rows are computed by [`Self::step`].
    pub fn recall_jobs(&mut self) {
        self.engine.recall();
    }

    /// Lets jobs read. Until the tables are [reclaimed](Self::reclaim_tables) nothing else must be done with the pipeline.
    pub fn share_tables(&mut self) {
        self.engine.share_tables();
    }

    /// Ends that, at once.
    pub fn reclaim_tables(&mut self) {
        self.engine.reclaim_tables();
    }

    /// How often an object ceased to be [pending](Self::is_pending), for whatever reason.
    pub fn resolved(&self) -> u64 {
        self.engine.counters_of::<Verdicts>().resolved
            + self.engine.counters_of::<Facts>().resolved
            + self.engine.jobs()
            + self.engine.admitted()
    }

    /// Works until nothing waits.
    pub fn settle(&mut self) -> Output {
        self.engine.settle();
        let mut output = Output::default();
        self.finish(&mut output);
        output
    }

    /// Everything that has come out since the last time, once nothing waits.
    pub fn finish(&mut self, output: &mut Output) {
        if self.quarantine.tidy(&mut self.engine) {
            while self.engine.run(SLICE) == Progress::More {}
        }
        for (fleet, withheld) in self.quarantine.take_changes() {
            match fleet {
                FleetId::Shared => output.withheld = Some(withheld),
                FleetId::Named(_) => output.fleets.entry(fleet).or_default().withheld = Some(withheld),
            }
        }
        for (fleet, kind, name) in self.quarantine.probes() {
            match fleet {
                FleetId::Shared => output.probes.push((kind, name)),
                FleetId::Named(_) => output.fleets.entry(fleet).or_default().probes.push((kind, name)),
            }
        }
        let mut changes = FleetChanges::default();
        resources::all_changes(&mut self.engine, std::mem::take(&mut self.early), &mut changes);
        output.add(changes);
        let object_resources = self.engine.changes::<ObjectResources>();
        output.object_resources.extend(object_resources.set.into_iter().map(|(object, list)| (object, Some(list))));
        output.object_resources.extend(object_resources.gone.into_iter().map(|object| (object, None)));
        let facts = self.engine.changes::<Facts>();
        output.facts.extend(facts.set.into_iter().map(|(object, facts)| (object, Some(Arc::unwrap_or_clone(facts)))));
        output.facts.extend(facts.gone.into_iter().map(|object| (object, None)));
        output.verdicts.extend(emissary::annotation_verdicts::changes(&mut self.engine));
    }

    /// The hosts that wait for a self-signed certificate. Whoever makes one hands it in by [`Self::sign`].
    pub fn unsigned(&mut self) -> Vec<Host> {
        let changes = self.engine.changes::<Unsigned>();
        for (certificate, _) in changes.set {
            if let CertificateRef::SelfSigned(host) = certificate {
                self.unsigned.insert(host);
            }
        }
        for certificate in &changes.gone {
            if let CertificateRef::SelfSigned(host) = certificate {
                self.unsigned.remove(host);
            }
        }
        self.unsigned.iter().cloned().collect()
    }

    /// Takes the self-signed certificate of a host.
    pub fn sign(&mut self, host: &Host, pair: KeyPair) {
        self.engine.set::<SelfSigned>(host, pair);
    }

    /// How many objects there are, by the plural of their kind.
    pub fn objects(&self) -> Vec<(&'static str, usize)> {
        objects::counts(&self.engine)
    }

    /// The Secrets whose certificates expire soonest among those that hosts use, and when, in seconds since 1970.
    pub fn soonest_expiries(&self, most: usize) -> Vec<(ObjectRef, i64)> {
        self.clock.soonest_ends(most)
    }

    /// Why proxies of the shared fleet send no spans, where requests are to be traced.
    pub fn tracing_problem(&self) -> Option<&resolve::Rejection> {
        self.engine.get::<Tracers>(&FleetId::Shared)?.problem.as_ref()
    }

    /// The engine, to look at: counters, rows, what each was computed from.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Compares every table with a build from nothing.
    pub fn self_check(&mut self) -> Result<(), Divergence> {
        self.engine.self_check()
    }
}
