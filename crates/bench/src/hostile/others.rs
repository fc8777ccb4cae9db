//! The others: they edit routes and move endpoints, one change after the other, and note what each took.
//!
//! In: a fixture. Out: a [`Sample`] for each change. What counts is when the very resource of the change has come, not when anything
//! has: the attacker's changes travel by the same stream.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use model::{FleetId, PortId};
use testbed::XdsClient;
use testbed::xds_client::{Kind, State};
use tokio::time::{sleep, timeout};

use super::attacker::Attacker;
use super::fixture::Fixture;
use super::outcome::{Change, Outcome, Sample};
use super::{LATE, MOST_MEMORY};
use crate::follower::{ROUTES, until};
use crate::proxy::ExpectedAnswer;
use crate::usage::Usage;
use crate::world::{Backend, FIRST, FIRST_PATH, SECOND, host, name};

/// Between two changes: others are busy, not attackers.
const REST: Duration = Duration::from_millis(20);
/// How often the controller's memory is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How soon a connection is tried again.
const AGAIN: Duration = Duration::from_millis(20);

/// How long changes are made.
pub struct Until {
    /// At least so many of each kind.
    pub samples: usize,
    /// At least so long, after the attack is in place if there is one.
    pub window: Duration,
    /// Which attack.
    pub attack: Option<Attacker>,
}

/// All others.
pub struct Others<'b, 'a> {
    fixture: &'b Fixture<'a>,
    client: Option<XdsClient>,
    hosts: Vec<Host>,
    turn: usize,
    cuts: usize,
}

/// What is known of one host.
struct Host {
    routes: (Kind, String),
    endpoints: String,
    path: String,
    backend: Backend,
}

impl<'b, 'a> Others<'b, 'a> {
    /// A client that has all hosts.
    pub async fn new(fixture: &'b Fixture<'a>) -> Result<Others<'b, 'a>> {
        let mut others = Others { fixture, client: None, hosts: Vec::new(), turn: 0, cuts: 0 };
        let client = others.connect().await?;
        let size = fixture.world.size;
        let all = |state: &State| {
            state.count(Kind::Endpoints) >= size && ROUTES.iter().any(|kind| state.count(*kind) >= size)
        };
        timeout(LATE, until(&client, "all hosts", all)).await.context("the hosts are not there")??;
        others.hosts = client.look(|state| (0..size).map(|number| Host::find(state, number)).collect::<Result<_>>())?;
        others.client = Some(client);
        Ok(others)
    }

    /// Connects one more client and tells how long it took until it had all hosts, in milliseconds.
    pub async fn newcomer(&self) -> Result<f64> {
        let start = Instant::now();
        let has_all = |state: &State| self.hosts.iter().all(|host| host.is_held(state));
        let come = async {
            let client = self.connect().await?;
            until(&client, "all hosts", has_all).await
        };
        match timeout(LATE, come).await {
            Ok(result) => result.map(|()| since(start)),
            Err(_) => Ok(LATE.as_secs_f64() * 1000.0),
        }
    }

    /// Makes changes of all kinds in turn. It ends early when one never comes, and fails when the controller ends or takes too
    /// much memory.
    pub async fn change(
        &mut self,
        until: &Until,
        longest: Duration,
        mut acks: impl FnMut(Change, Sample),
    ) -> Result<()> {
        let (start, pid) = (Instant::now(), self.fixture.controller.pid());
        let mut made = 0;
        loop {
            let mut is_late = false;
            for change in Change::ALL {
                let sample = tokio::select! {
                    sample = self.make(change) => sample?,
                    why = too_large(pid) => bail!("{why}"),
                };
                is_late |= Outcome::is_late(sample.client) || sample.served.is_some_and(Outcome::is_late);
                acks(change, sample);
                sleep(REST).await;
            }
            made += 1;
            let from = until.attack.as_ref().map_or(Some(start), Attacker::since);
            let is_enough = from.is_some_and(|from| from.elapsed() >= until.window);
            if is_late || made >= until.samples && is_enough || start.elapsed() > longest {
                return Ok(());
            }
        }
    }

    /// What a reader should know.
    pub fn notes(&self) -> Vec<String> {
        let cuts = (self.cuts > 0)
            .then(|| format!("the server ended the stream of the client that follows {} times", self.cuts));
        cuts.into_iter().collect()
    }

    async fn connect(&self) -> Result<XdsClient> {
        loop {
            match XdsClient::to(self.fixture.xds()).as_envoy().count_only().connect().await {
                Ok(client) => return Ok(client),
                // Refused, or closed before it was heard: there are too many of the attacker's.
                Err(_) => sleep(AGAIN).await,
            }
        }
    }

    /// Makes one change and waits for it.
    async fn make(&mut self, change: Change) -> Result<Sample> {
        let (fixture, size) = (self.fixture, self.hosts.len());
        self.turn += 1;
        let number = self.turn % size;
        let host = &mut self.hosts[number];
        let (edit, resource) = match change {
            Change::RouteEdit => {
                host.path = format!("/edit-{}", self.turn);
                (fixture.world.path_edit(number, &host.path), host.routes.clone())
            }
            Change::Endpoints => {
                host.backend = if host.backend.name == FIRST.name { SECOND } else { FIRST };
                (fixture.world.endpoints_edit(number, host.backend), (Kind::Endpoints, host.endpoints.clone()))
            }
        };
        let expected = ExpectedAnswer::new(number, &host.path, host.backend);
        // Before the write: its change may be there before anybody here gets to look.
        let before = self.client.as_ref().and_then(|client| client.look(|state| version(state, &resource)));
        let start = Instant::now();
        // The write may be done when the rest never comes.
        let written = Cell::new(None);
        let all = async {
            let write = async { fixture.writer.edit(&edit).await.map(|()| written.set(Some(since(start)))) };
            let client = async { self.follow(&resource, before).await.map(|()| since(start)) };
            let served = async {
                match &fixture.proxy {
                    Some(proxy) => Ok(Some((proxy.until_served(&expected).await - start).as_secs_f64() * 1000.0)),
                    None => Ok(None),
                }
            };
            futures::try_join!(write, client, served)
        };
        match timeout(LATE, all).await {
            Ok(Ok(((), client, served))) => Ok(Sample { write: written.get().unwrap_or(client), client, served }),
            Ok(Err(error)) => Err(error),
            Err(_) => {
                let late = since(start);
                let served = fixture.proxy.as_ref().map(|_| late);
                Ok(Sample { write: written.get().unwrap_or(late), client: late, served })
            }
        }
    }

    /// Waits until a resource has another version than before; over streams that the server ends.
    async fn follow(&mut self, resource: &(Kind, String), before: Option<String>) -> Result<()> {
        loop {
            let client = match self.client.take() {
                Some(client) => client,
                None => self.connect().await?,
            };
            let is_new = |state: &State| version(state, resource).is_some_and(|now| Some(now) != before);
            let client = self.client.insert(client);
            match until(client, "a change", is_new).await {
                Ok(()) => return Ok(()),
                Err(_) => {
                    self.cuts += 1;
                    self.client = None;
                    sleep(AGAIN).await;
                }
            }
        }
    }
}

/// The version of a resource that a client has.
fn version(state: &State, (kind, name): &(Kind, String)) -> Option<String> {
    state.held(*kind, name).map(|held| held.version.clone())
}

impl Host {
    fn find(state: &State, number: usize) -> Result<Host> {
        let of_service = format!("/{}/", name(number));
        let scope = scope(&host(number))?;
        let routes = ROUTES.iter().find(|kind| state.held(**kind, &scope).is_some()).map(|kind| (*kind, scope));
        let endpoints = state.names(Kind::Endpoints).into_iter().find(|name| name.contains(&of_service));
        match (routes, endpoints) {
            (Some((kind, routes)), Some(endpoints)) => Ok(Host {
                routes: (kind, routes),
                endpoints: endpoints.to_owned(),
                path: FIRST_PATH.to_owned(),
                backend: FIRST,
            }),
            _ => bail!("nothing travels by the name of {}: this needs --packing=scoped", host(number)),
        }
    }

    fn is_held(&self, state: &State) -> bool {
        state.held(self.routes.0, &self.routes.1).is_some() && state.held(Kind::Endpoints, &self.endpoints).is_some()
    }
}

/// The name of the scope of a host on the plaintext port.
fn scope(host: &str) -> Result<String> {
    let port = PortId::new(FleetId::Shared, "ingress_http");
    Ok(envoy::name::scope(&port, &model::Host::parse(host)?))
}

/// Milliseconds since then.
fn since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1000.0
}

/// Done when the controller has more memory than it may, or is gone; says which.
async fn too_large(pid: u32) -> String {
    loop {
        match Usage::of(pid) {
            Ok(usage) if usage.rss > MOST_MEMORY => {
                return format!("the controller has {:.0} MiB, and is stopped", usage.rss);
            }
            Ok(_) => sleep(LOOK).await,
            Err(_) => return "the controller has ended".to_owned(),
        }
    }
}
