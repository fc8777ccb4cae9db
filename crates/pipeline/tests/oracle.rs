//! Any script of edits, in any slices, ends in what a build from nothing gives: the same resources, byte for byte, and the
//! same verdicts, in whatever order the objects came.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "other tests use more of it")]
#[path = "packing/claims.rs"]
mod claims;

#[path = "oracle/edits.rs"]
mod edits;
#[path = "oracle/forms.rs"]
mod forms;

use claims::Claims;
use edits::{Edit, edit, meta};
use engine::{Finished, Offloading, Progress};
use forms::{claim, fleet, fleet_settings, targets_of_claims, vary};
use kinds::{Object, ObjectRef};
use model::FleetId;
use pipeline::{
    FleetSettings, Output, Pipeline, Quarantined, Settings,
    settings::{Certificates, Packing},
};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::json;
use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};
use testbed::cases::object;
use xds::{Kind, Name, Outcome, ResourceOutcome};

/// A resource in a form that can be compared.
type Told = (Vec<u8>, Vec<xds::Ref>, xds::Role, bool, Option<String>);

/// The state that the output of all batches adds up to.
#[derive(Default, PartialEq, Debug)]
struct ReceivedState {
    resources: BTreeMap<(FleetId, Kind, Name), Told>,
    verdicts: BTreeMap<String, Vec<String>>,
}

impl ReceivedState {
    fn apply(&mut self, output: Output) {
        let named = output.fleets.into_iter().map(|(fleet, output)| (fleet, output.xds));
        for (fleet, changes) in std::iter::once((FleetId::Shared, output.xds)).chain(named) {
            for (kind, name) in changes.removes {
                self.resources.remove(&(fleet.clone(), kind, name));
            }
            for resource in changes.upserts {
                let origin = resource.origin.map(|origin| origin.to_string());
                let told = (resource.body.to_vec(), resource.refs, resource.role, resource.warms, origin);
                self.resources.insert((fleet.clone(), resource.kind, resource.name), told);
            }
        }
        for (object, list) in output.verdicts {
            match list {
                Some(list) => {
                    let list = list.iter().map(ToString::to_string).collect();
                    self.verdicts.insert(object.to_string(), list);
                }
                None => _ = self.verdicts.remove(&object.to_string()),
            }
        }
    }

    /// A refusal of one of the resources by a proxy that has nothing else.
    fn refusal(&self, which: u16) -> Option<(FleetId, ResourceOutcome)> {
        let which = usize::from(which).checked_rem(self.resources.len())?;
        let ((fleet, kind, name), (body, ..)) = self.resources.iter().nth(which)?;
        let outcome = Outcome::Rejected { text: "no".into(), held: None };
        let content = xds::content_version(body);
        let outcome = ResourceOutcome { kind: *kind, name: name.clone(), version: content, content, outcome };
        Some((fleet.clone(), outcome))
    }

    /// Everything that is pointed at and ours to send is there: nobody is sent to a name that nobody has.
    fn assert_whole(&self) {
        for ((fleet, kind, name), (_, refs, ..)) in &self.resources {
            for to in refs {
                let xds::Ref::To(to, target) = to else { continue };
                let there = self.resources.contains_key(&(fleet.clone(), *to, target.clone()));
                assert!(there, "{fleet}: {kind} {name} points at {to} {target}");
            }
        }
    }
}

/// What is withheld in each fleet.
type Withheld = BTreeMap<FleetId, Vec<Quarantined>>;

/// Everything that can be edited.
#[derive(Clone)]
struct Inputs {
    settings: Settings,
    fleets: BTreeMap<u8, FleetSettings>,
    objects: BTreeMap<ObjectRef, Object>,
    claims: BTreeMap<u8, Claims>,
}

impl Inputs {
    fn built(&self, withheld: &Withheld, reversed: bool) -> ReceivedState {
        let mut pipeline = Pipeline::new(&self.settings);
        for (fleet, withheld) in withheld {
            pipeline.withhold_in(fleet, withheld.clone());
        }
        self.fleets.iter().for_each(|(number, settings)| pipeline.set_fleet(&fleet(*number), Some(settings.clone())));
        let mut objects: Vec<_> = self.objects.iter().collect();
        let mut claims: Vec<_> = self.claims.values().collect();
        if reversed {
            objects.reverse();
            claims.reverse();
        }
        objects.into_iter().for_each(|(key, object)| pipeline.put(key, Some(object.clone())));
        claims.into_iter().for_each(|claims| claims.clone().put(&mut pipeline));
        let mut known = ReceivedState::default();
        known.apply(pipeline.settle());
        known
    }
}

/// Takes note of what comes out.
fn reported(mut output: Output, known: &mut ReceivedState, withheld: &mut Withheld) {
    if let Some(new) = output.withheld.take() {
        withheld.insert(FleetId::Shared, new);
    }
    for (fleet, output) in &mut output.fleets {
        if let Some(new) = output.withheld.take() {
            withheld.insert(fleet.clone(), new);
        }
    }
    known.apply(output);
}

/// Computes a row as another thread would.
fn job(pipeline: &mut Pipeline) -> Option<Finished> {
    let job = pipeline.next_job()?;
    pipeline.share_tables();
    let finished = job.run();
    pipeline.reclaim_tables();
    Some(finished)
}

fn run(settings: &Settings, script: Vec<Edit>, offloading: Offloading) {
    let mut pipeline = Pipeline::new(settings);
    pipeline.set_offloading(offloading);
    let mut finished: VecDeque<Finished> = VecDeque::new();
    let (fleets, objects, all_claims) = Default::default();
    let mut inputs = Inputs { settings: settings.clone(), fleets, objects, claims: all_claims };
    for object in targets_of_claims() {
        pipeline.put(&object.key(), Some(object.clone()));
        inputs.objects.insert(object.key(), object);
    }
    let mut known = ReceivedState::default();
    let (mut withheld, mut others): (Withheld, Withheld) = Default::default();
    for edit in script {
        match edit {
            Edit::Put(value) => {
                let object = object(&value);
                pipeline.put(&object.key(), Some(object.clone()));
                inputs.objects.insert(object.key(), object);
            }
            Edit::Remove(value) => {
                let key = object(&value).key();
                pipeline.put(&key, None);
                inputs.objects.remove(&key);
            }
            Edit::Settings(form) => {
                vary(&mut inputs.settings, form);
                pipeline.set_settings(&inputs.settings);
            }
            Edit::Fleet(number, there) => {
                // The shared fleet's are those of the operator.
                if number > 0 && there {
                    inputs.fleets.insert(number, fleet_settings(number));
                } else {
                    inputs.fleets.remove(&number);
                }
                if number > 0 {
                    pipeline.set_fleet(&fleet(number), inputs.fleets.get(&number).cloned());
                }
            }
            Edit::Claim(name, form) => {
                let claims = claim(name, form);
                if form.is_multiple_of(7) {
                    inputs.claims.remove(&name);
                    claims.remove(&mut pipeline);
                } else {
                    inputs.claims.insert(name, claims.clone());
                    claims.put(&mut pipeline);
                }
            }
            Edit::Step => {
                let mut output = Output::default();
                if pipeline.step_for(Duration::ZERO, &mut output) == Progress::Settled {
                    pipeline.finish(&mut output);
                }
                reported(output, &mut known, &mut withheld);
            }
            Edit::Settle => {
                reported(pipeline.settle(), &mut known, &mut withheld);
                known.assert_whole();
            }
            Edit::Admit(partitions) => pipeline.admit(partitions),
            Edit::Job => finished.extend(job(&mut pipeline)),
            Edit::Finish => {
                if let Some(finished) = finished.pop_front() {
                    drop(pipeline.finish_job(finished));
                }
            }
            Edit::Check => {
                // A job has a place in the books until it is done.
                finished.drain(..).for_each(|finished| drop(pipeline.finish_job(finished)));
                pipeline.self_check().unwrap();
                reported(pipeline.settle(), &mut known, &mut withheld);
            }
            Edit::Refuse(which) => {
                let Some((fleet, outcome)) = known.refusal(which) else { continue };
                pipeline.on_outcome_in(&fleet, &outcome);
                reported(pipeline.settle(), &mut known, &mut withheld);
            }
            Edit::Share(some) => {
                for fleet in (0..3).map(fleet) {
                    let list = if some { withheld.get(&fleet).cloned().unwrap_or_default() } else { Vec::new() };
                    pipeline.withhold_in(&fleet, list.clone());
                    others.insert(fleet, list);
                }
            }
        }
    }
    // Jobs and parts alone bring everything up to date.
    finished.into_iter().for_each(|finished| drop(pipeline.finish_job(finished)));
    loop {
        let mut output = Output::default();
        while pipeline.step(&mut output) == Progress::More {}
        pipeline.finish(&mut output);
        reported(output, &mut known, &mut withheld);
        if pipeline.backlog() > 0 {
            pipeline.admit(1);
            continue;
        }
        let Some(finished) = job(&mut pipeline) else { break };
        drop(pipeline.finish_job(finished));
    }
    assert_eq!((pipeline.engine().offloaded(), pipeline.backlog()), (0, 0));
    known.assert_whole();
    // What waits for others to be tried is taken, at last.
    loop {
        let output = pipeline.settle();
        let probes = output.probes.iter().map(|probe| (FleetId::Shared, probe.clone()));
        let named =
            output.fleets.iter().flat_map(|(fleet, of)| of.probes.iter().map(|probe| (fleet.clone(), probe.clone())));
        let probe = probes.chain(named).next();
        reported(output, &mut known, &mut withheld);
        let Some((fleet, (kind, name))) = probe else { break };
        let outcome = ResourceOutcome { kind, name, version: 0, content: 0, outcome: Outcome::Accepted };
        pipeline.on_outcome_in(&fleet, &outcome);
    }
    for (fleet, list) in others {
        withheld.entry(fleet).or_default().extend(list);
    }
    known.assert_whole();
    pipeline.self_check().unwrap();
    assert_eq!(known, inputs.built(&withheld, false), "a build from nothing differs");
    assert_eq!(known, inputs.built(&withheld, true), "the order of the objects matters");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_script_ends_where_a_build_from_nothing_does(
        script in vec(edit(), 1..60),
        scoped in any::<bool>(),
        certificates in select(vec![Certificates::Auto, Certificates::OnDemand, Certificates::PerChain]),
        offloads in any::<bool>(),
    ) {
        let packing = if scoped { Packing::Scoped } else { Packing::Plain };
        let mut settings = Settings { packing, certificates, ..Settings::default() };
        settings.resolve.external_names = true;
        run(&settings, script, if offloads { Offloading::All } else { Offloading::Off });
    }
}

/// The shared fleet loses one user of a cluster and gets another while the row that counts its users is computed elsewhere.
#[test]
fn a_cluster_whose_users_change_keeps_its_endpoints() {
    let backend = json!({ "service": { "name": "api", "port": { "number": 80 } } });
    let ingress = json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": meta("default", "a"),
        "spec": { "rules": [{ "http": { "paths": [{ "path": "/", "pathType": "Exact", "backend": backend }] } }] } });
    let mut slice = json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": meta("default", "api"), "endpoints": [{ "addresses": ["192.0.2.1"] }], "ports": [{ "port": 8080 }] });
    slice["metadata"]["labels"] = json!({ "kubernetes.io/service-name": "api" });
    let (before, after) = ([Edit::Claim(0, 10336), Edit::Claim(2, 14626), Edit::Settle], Edit::Claim(2, 27904));
    let script = before.into_iter().chain([after, Edit::Put(ingress), Edit::Put(slice), Edit::Step, Edit::Job]);
    let certificates = Certificates::PerChain;
    run(&Settings { certificates, ..Settings::default() }, script.collect(), Offloading::All);
}
