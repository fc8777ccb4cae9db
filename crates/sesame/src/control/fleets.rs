//! Fleets of Gateways as they come and go: their settings go into the pipeline, what they must be to whoever creates their proxies,
//! and whose they are to whoever checks the proxies' tokens.
//!
//! A fleet that is gone is removed from the xDS server after the batch that takes everything away from it; its proxies go on with
//! what they have until they are gone, too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kinds::kind;
use model::{FleetId, FleetName, ObjectRef};
use pipeline::settings::Bind;
use pipeline::{FleetSettings, FleetState, OwnFleet, Pipeline, xds_fleet};
use provision::{FleetSpec, FleetStatus, Owner, Pages, Port, Tokens, Transport};
use xds::Server;

/// What fleets of Gateways are told to.
pub struct GatewayFleets {
    /// What holds in every fleet, beside its listeners.
    pub settings: FleetSettings,
    /// Whoever creates proxies.
    pub fleets: provision::Fleets,
    /// How that goes.
    pub statuses: provision::Statuses,
    /// Whoever checks tokens; none where the xDS server runs without TLS.
    pub tokens: Option<Arc<Tokens>>,
    /// Where the proxies of each fleet answer probes and scrapers.
    stats: BTreeMap<FleetId, Bind>,
}

impl GatewayFleets {
    /// No fleets yet.
    pub fn new(
        settings: FleetSettings,
        (fleets, statuses): (provision::Fleets, provision::Statuses),
        tokens: Option<Arc<Tokens>>,
    ) -> Self {
        Self { settings, fleets, statuses, tokens, stats: BTreeMap::new() }
    }

    /// Takes other settings, for every fleet there is and those to come.
    pub fn set_settings(&mut self, pipeline: &mut Pipeline, settings: FleetSettings) {
        self.settings = settings;
        for (fleet, stats) in &self.stats {
            pipeline.set_fleet(fleet, Some(self.settings_of(*stats)));
        }
    }

    /// What holds in a fleet: its listeners are those of its Gateway.
    fn settings_of(&self, stats: Bind) -> FleetSettings {
        FleetSettings { http: None, https: None, stats: Some(stats), admin_port: 0, ..self.settings.clone() }
    }

    /// Takes the fleets that have come, changed or gone; says whether the pipeline has something to work on because of it. Those
    /// that are gone are added to `gone`.
    pub fn settle(&mut self, pipeline: &mut Pipeline, server: &Server, gone: &mut BTreeSet<FleetId>) -> bool {
        let changes = pipeline.gateway_fleets();
        let any = !changes.is_empty();
        for (gateway, fleet) in changes {
            let name = FleetName::new(&gateway.namespace, &gateway.name);
            let id = FleetId::Named(name.clone().into());
            match fleet {
                Some(fleet) => {
                    let is_back = gone.remove(&id);
                    let spec = spec(&fleet);
                    let stats = Bind::any(Pages::beside(&spec.ports).stats);
                    self.stats.insert(id.clone(), stats);
                    pipeline.set_fleet(&id, Some(self.settings_of(stats)));
                    let is_other = self.tokens.as_ref().is_some_and(|tokens| tokens.set(&name, Some(&fleet.uid)));
                    if is_other || is_back {
                        // Another Gateway of that name: the tokens of the proxies of the one before are not valid any more.
                        server.disconnect(&xds_fleet(&id));
                    }
                    self.fleets.put(spec);
                }
                None => {
                    self.stats.remove(&id);
                    pipeline.set_fleet(&id, None);
                    if let Some(tokens) = &self.tokens {
                        tokens.set(&name, None);
                    }
                    self.fleets.remove(&name);
                    gone.insert(id);
                }
            }
        }
        any
    }

    /// How the next fleet is doing.
    pub async fn next(&mut self) -> (FleetName, Option<FleetStatus>) {
        match self.statuses.recv().await {
            Some(status) => status,
            // The task has ended, and the server with it.
            None => std::future::pending().await,
        }
    }
}

/// Tells the pipeline how a fleet is doing.
pub fn set_state(pipeline: &mut Pipeline, name: &FleetName, status: Option<FleetStatus>) {
    let gateway = ObjectRef::new(kind::GATEWAY, name.namespace.clone(), name.name.clone());
    let state = status.map(|status| FleetState {
        uid: status.uid.into(),
        addresses: status.addresses,
        has_ready_proxy: status.ready > 0,
        problem: status.problem.map(|problem| problem.to_string().into()),
    });
    pipeline.set_fleet_state(&gateway, state);
}

fn spec(fleet: &OwnFleet) -> FleetSpec {
    let transport = |is_udp: bool| if is_udp { Transport::Udp } else { Transport::Tcp };
    FleetSpec {
        name: fleet.name.clone(),
        owner: Owner {
            api_version: kind::GATEWAY.api_version(),
            kind: kind::GATEWAY.name().to_owned(),
            uid: fleet.uid.to_string(),
        },
        labels: fleet.labels.clone(),
        annotations: fleet.annotations.clone(),
        ports: fleet.ports.iter().map(|(port, is_udp)| Port { port: *port, transport: transport(*is_udp) }).collect(),
        address: fleet.address,
    }
}
