//! The tables of attacks: what the others' changes took without each and during it, and the controller's memory.

use super::percentile;
use super::table::{ratio, render, title};
use crate::hostile::{Change, Fleet, Outcome};
use crate::row::Unit;

/// All tables of attacks; nothing without any.
pub fn tables(outcomes: &[Outcome], fleet: Option<&Fleet>, markdown: bool) -> String {
    let mut text = String::new();
    if !outcomes.is_empty() {
        text.push_str(&title("one tenant attacks: the others' changes, write → client, p99", markdown));
        text.push_str(&render(&changes(outcomes), markdown));
        text.push_str(&title("the controller's share: answered write → client, p99", markdown));
        text.push_str(&render(&controller(outcomes), markdown));
        if outcomes.iter().any(|outcome| outcome.attack.has_envoy()) {
            text.push_str(&title("the same through Envoy: write → served, p99", markdown));
            text.push_str(&render(&served(outcomes), markdown));
        }
        text.push_str(&notes(outcomes));
    }
    if let Some(fleet) = fleet {
        text.push_str(&title(&format!("two replicas, {} TLS hosts, a client each", fleet.hosts), markdown));
        text.push_str(&render(&replicas(fleet), markdown));
    }
    text
}

/// One line an attack: both kinds of changes, a client that comes, memory.
fn changes(outcomes: &[Outcome]) -> Vec<Vec<String>> {
    let head = [
        "attack",
        "route edit",
        "during",
        "ratio",
        "endpoints",
        "during",
        "ratio",
        "API server's share",
        "during",
        "new client",
        "during",
        "memory",
        "at most",
        "more",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for outcome in outcomes {
        let mut line = vec![outcome.attack.label().to_owned()];
        for change in Change::ALL {
            let (before, during) = of(outcome, change, |times| &times.client);
            line.extend([shown(before), shown(during), times(before, during)]);
        }
        let (before, during) = of(outcome, Change::RouteEdit, |times| &times.write);
        line.extend([shown(before), shown(during)]);
        line.extend([shown(outcome.connected.before), shown(outcome.connected.during)]);
        let (before, most) = (outcome.memory.before, outcome.memory.during);
        line.extend([mebibytes(before), mebibytes(most), mebibytes((most - before).max(0.0))]);
        lines.push(line);
    }
    lines
}

/// One line an attack, with the time from the API server's answer on: attacker and others share its cores, too. The client
/// often has a change before the writer has the answer, which counts as no time at all. The ratio is that of the whole change, write
/// → client, if only the controller's share had grown.
fn controller(outcomes: &[Outcome]) -> Vec<Vec<String>> {
    let head = ["attack", "route edit", "during", "more", "ratio", "endpoints", "during", "more", "ratio"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for outcome in outcomes {
        let mut line = vec![outcome.attack.label().to_owned()];
        for change in Change::ALL {
            let (whole, _) = of(outcome, change, |times| &times.client);
            let pair = outcome.changes.get(&change);
            let share = |times: &crate::hostile::Times| {
                let shares = times.client.iter().zip(&times.write).map(|(client, write)| (client - write).max(0.0));
                percentile(&shares.collect::<Vec<_>>(), 99)
            };
            let (before, during) =
                (pair.and_then(|pair| share(&pair.before)), pair.and_then(|pair| share(&pair.during)));
            let more = before.zip(during).map(|(before, during)| (during - before).max(0.0));
            let with_more = whole.zip(more).map(|(whole, more)| whole + more);
            line.extend([shown(before), shown(during), shown(more), times(whole, with_more)]);
        }
        lines.push(line);
    }
    lines
}

/// One line an attack that was made with an Envoy.
fn served(outcomes: &[Outcome]) -> Vec<Vec<String>> {
    let head = ["attack", "route edit", "during", "ratio", "endpoints", "during", "ratio"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for outcome in outcomes.iter().filter(|outcome| outcome.attack.has_envoy()) {
        let mut line = vec![outcome.attack.label().to_owned()];
        for change in Change::ALL {
            let (before, during) = of(outcome, change, |times| &times.served);
            line.extend([shown(before), shown(during), times(before, during)]);
        }
        lines.push(line);
    }
    lines
}

fn replicas(fleet: &Fleet) -> Vec<Vec<String>> {
    let (count, after) = fleet.programmed;
    let memory: Vec<String> = fleet.memory.iter().map(|most| mebibytes(*most)).collect();
    let row = |what: &str, value: String| vec![what.to_owned(), value];
    vec![
        row("", "seen".to_owned()),
        row("both clients have all hosts", Unit::Milliseconds.show(fleet.clients)),
        row("programmed", format!("{count} of {}", fleet.hosts)),
        row("until then", Unit::Milliseconds.show(after)),
        row("memory of each replica, at most", memory.join(", ")),
    ]
}

fn notes(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        let failed = outcome.failed.iter().map(|why| format!("stopped: {}", why.lines().next().unwrap_or_default()));
        let samples = Change::ALL.map(|change| outcome.changes.get(&change).map_or(0, |pair| pair.during.client.len()));
        let made = format!("{} route edits and {} endpoint changes during it", samples[0], samples[1]);
        for note in [made].into_iter().chain(outcome.notes.iter().cloned()).chain(failed) {
            text.push_str(&format!("- {}: {note}\n", outcome.attack.label()));
        }
    }
    text
}

/// The p99 without the attack and during it.
fn of(
    outcome: &Outcome,
    change: Change,
    values: impl Fn(&crate::hostile::Times) -> &Vec<f64>,
) -> (Option<f64>, Option<f64>) {
    let Some(pair) = outcome.changes.get(&change) else { return (None, None) };
    (percentile(values(&pair.before), 99), percentile(values(&pair.during), 99))
}

/// How many times as long it took; at least so many where it never came.
fn times(before: Option<f64>, during: Option<f64>) -> String {
    let ratio = ratio(during.as_ref(), before.as_ref());
    if during.is_some_and(Outcome::is_late) { format!("> {ratio}") } else { ratio }
}

fn shown(milliseconds: Option<f64>) -> String {
    match milliseconds {
        None => "–".to_owned(),
        Some(late) if Outcome::is_late(late) => {
            format!("> {}", Unit::Milliseconds.show(crate::hostile::LATE.as_secs_f64() * 1000.0))
        }
        Some(value) => Unit::Milliseconds.show(value),
    }
}

fn mebibytes(value: f64) -> String {
    format!("{value:.0} MiB")
}
