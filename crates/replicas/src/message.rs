//! What replicas say to each other: JSON, so that replicas of different versions understand as much as they can.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use xds::{Fleet, Hold, Kind, Name, Tallies};

/// A version of a resource that somebody wants to know about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Question {
    /// The fleet.
    pub fleet: Fleet,
    /// The type of the resource.
    pub kind: Kind,
    /// Its name.
    pub name: Name,
    /// Its version.
    pub version: u64,
}

/// Holds by fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<(Fleet, Vec<Hold>)>", from = "Vec<(Fleet, Vec<Hold>)>")]
pub struct Shared(BTreeMap<Fleet, Vec<Hold>>);

impl Shared {
    /// Those of one fleet.
    pub fn of(&self, fleet: &Fleet) -> Vec<Hold> {
        self.0.get(fleet).cloned().unwrap_or_default()
    }

    pub(crate) fn set(&mut self, fleet: &Fleet, holds: Vec<Hold>) {
        if holds.is_empty() {
            self.0.remove(fleet);
        } else {
            self.0.insert(fleet.clone(), holds);
        }
    }

    /// Adds those of another, each once.
    pub(crate) fn add(&mut self, others: &Shared) {
        for (fleet, holds) in &others.0 {
            let all = self.0.entry(fleet.clone()).or_default();
            all.extend(holds.iter().cloned());
            all.sort_unstable();
            // Words may differ from proxy to proxy; one of them is enough.
            all.dedup_by(|a, b| (&a.target, a.hash) == (&b.target, b.hash));
        }
    }
}

impl From<Shared> for Vec<(Fleet, Vec<Hold>)> {
    fn from(shared: Shared) -> Self {
        shared.0.into_iter().collect()
    }
}

impl From<Vec<(Fleet, Vec<Hold>)>> for Shared {
    fn from(list: Vec<(Fleet, Vec<Hold>)>) -> Self {
        Self(list.into_iter().collect())
    }
}

/// From a follower to the holder.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Up {
    /// All that it withholds, if that has changed.
    pub holds: Option<Shared>,
    /// Counts that have changed.
    pub answers: Vec<(Question, Tallies)>,
    /// Resources that all its proxies of some version refused: do others take them?
    pub cases: Vec<Question>,
}

/// From the holder to a follower.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Down {
    /// All that others withhold, if that has changed.
    pub holds: Option<Shared>,
    /// All questions, if they have changed.
    pub questions: Option<Vec<Question>>,
    /// Whether its cases stand.
    pub rulings: Vec<(Question, bool)>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use xds::{Tally, Target};

    #[test]
    #[allow(clippy::unwrap_used, reason = "a test may panic")]
    fn what_is_said_is_understood() {
        let target = Target { kind: Kind::Route, name: "http".into(), host: Some("a.example.com".into()) };
        let mut holds = Shared::default();
        holds.set(&Fleet::named("shop", "edge"), vec![Hold { target, hash: u64::MAX, text: "no".into() }]);
        let question = Question { fleet: Fleet::Shared, kind: Kind::Cluster, name: "c".into(), version: u64::MAX - 1 };
        let tallies = Tallies::from([("1.40.0".into(), Tally { have: 1, ..Tally::default() })]);
        let answers = vec![(question.clone(), tallies)];
        let up = Up { holds: Some(holds), answers, cases: vec![question] };
        let text = serde_json::to_string(&up).unwrap();
        assert_eq!(serde_json::from_str::<Up>(&text).unwrap(), up);
        let newer = text.replacen('{', r#"{"more": [1],"#, 1);
        assert_eq!(serde_json::from_str::<Up>(&newer).unwrap(), up, "a newer replica may say more");
        assert_eq!(serde_json::from_str::<Down>("{}").unwrap(), Down::default());
    }
}
