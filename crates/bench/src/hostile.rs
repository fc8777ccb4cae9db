//! `make bench HOSTILE=1`: one tenant attacks while others edit routes and move endpoints.
//!
//! In: a built `sesame`, which attacks, how large. Out: an [`Outcome`] for each attack: what the others' changes took without it
//! and during it, and the controller's memory. Each attack has a fixture of its own, so that none sees what another left, and
//! limits in time and memory, so that a controller which it stalls ends the row and not the benchmark.

mod attack;
mod attacker;
mod clients;
mod endpoints;
mod fixture;
mod objects;
mod others;
mod outcome;
mod replicas;
mod secrets;
mod status;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use crate::usage::{Usage, reset_peak};
pub use attack::Attack;
use attacker::Attacker;
use fixture::Fixture;
use others::{Others, Until};
pub use outcome::{Change, Fleet, Outcome, Times};

/// After how long a change counts as one that never came.
pub const LATE: Duration = Duration::from_secs(20);
/// How long what an attack needs may take.
const PREPARATION: Duration = Duration::from_secs(180);
/// How long a row may take once the attack has begun, whatever happens.
const LONGEST: Duration = Duration::from_secs(60);
/// How much memory a controller may take, in MiB, before it is stopped: there are others on this machine.
const MOST_MEMORY: f64 = 6.0 * 1024.0;

/// How much is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program.
    pub sesame: PathBuf,
    /// Further arguments of `sesame serve`.
    pub serve: Vec<String>,
    /// How many hosts the others have.
    pub hosts: usize,
    /// How much of each attack: 1 is what the table says.
    pub scale: f64,
    /// How many changes of each kind the others make, at least, without the attack and during it.
    pub samples: usize,
    /// How long they go on making them, at least: 99 of 100 need some hundred.
    pub window: Duration,
    /// How many hosts two replicas serve in the last row; none leaves it out.
    pub replicas_at: usize,
}

/// Measures all of these attacks. One that cannot be measured says so in its row.
pub async fn measure(
    attacks: &[Attack],
    options: &Options,
    mut reported: impl FnMut(Outcome) -> Result<()>,
) -> Result<()> {
    for attack in attacks {
        eprintln!("bench: attack: {}", attack.label());
        let mut outcome = Outcome::new(*attack);
        if let Err(error) = row(*attack, options, &mut outcome).await {
            eprintln!("bench: {}: {error:#}", attack.label());
            outcome.failed = Some(format!("{error:#}"));
        }
        reported(outcome)?;
    }
    Ok(())
}

/// The last row: two replicas, and everything programmed.
pub async fn fleet(options: &Options) -> Result<Option<Fleet>> {
    match options.replicas_at {
        0 => Ok(None),
        hosts => replicas::measure(options, hosts).await.map(Some),
    }
}

async fn row(attack: Attack, options: &Options, outcome: &mut Outcome) -> Result<()> {
    let sesame = attack.sesame(options);
    let fixture = Fixture::start(attack, &sesame, options).await?;
    let mut others = Others::new(&fixture).await?;
    let pid = fixture.controller.pid();

    outcome.connected.before = Some(others.newcomer().await?);
    let calm = Until { samples: options.samples, window: options.window, attack: None };
    others.change(&calm, LONGEST, |change, sample| outcome.before(change, sample)).await?;
    let before = Usage::of(pid)?;
    reset_peak(pid)?;

    let attacker = Attacker::new(&fixture, options);
    let held = tokio::time::timeout(PREPARATION, attack.prepare(&attacker)).await??;
    let strike = tokio::spawn({
        let attacker = attacker.clone();
        async move { attack.strike(&attacker).await }
    });
    let attacked = Until { samples: options.samples, window: options.window, attack: Some(attacker.clone()) };
    let ended = others.change(&attacked, LONGEST, |change, sample| outcome.during(change, sample)).await;
    if ended.is_ok() {
        outcome.connected.during = others.newcomer().await.ok();
    }
    match strike.is_finished() {
        true => match strike.await? {
            Ok(()) => {}
            Err(error) => outcome.note(format!("the attack ended early: {error:#}")),
        },
        false => strike.abort(),
    }
    drop(held);
    if let Ok(after) = Usage::of(pid) {
        outcome.memory(before, after);
    }
    for note in attacker.notes().into_iter().chain(others.notes()).chain(fixture.notes()) {
        outcome.note(note);
    }
    drop(others);
    ended?;
    fixture.controller.stop().await
}
