//! Messages between replicas: JSON, so that replicas of different versions understand as much as they can.
//!
//! They carry changes only, in pages ([`crate::page`]); each list is in the order of the changes. An element of a list that this version
//! cannot read, such as one about a type of resource that only the other version knows, is skipped and the rest of the message is read.
//! The sender gets no answer about a skipped element and does without it, as it would if this replica did not run.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
};
use tracing::{debug, info};
use xds::{Fleet, FleetAckCounts, Kind, Nack, Name, QuarantineTarget, Quarantined, Version};

/// A version of a resource whose acknowledgements are asked for.
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

impl Question {
    pub(crate) fn new(fleet: &Fleet, version: &Version) -> Self {
        let Version { kind, name, version } = version.clone();
        Self { fleet: fleet.clone(), kind, name, version }
    }

    pub(crate) fn resource(&self) -> Version {
        Version { kind: self.kind, name: self.name.clone(), version: self.version }
    }
}

/// Something that is withheld from a fleet from now on, or no longer.
pub(crate) type QuarantineChange = (Fleet, Quarantined, bool);

/// What is withheld, with the error of a proxy.
type Quarantine = BTreeMap<(QuarantineTarget, u64), Arc<str>>;

/// Quarantine by fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shared(BTreeMap<Fleet, Quarantine>);

impl Shared {
    /// Those of one fleet.
    pub fn of(&self, fleet: &Fleet) -> Vec<Quarantined> {
        self.0.get(fleet).into_iter().flatten().map(hold).collect()
    }

    pub(crate) fn set(&mut self, fleet: &Fleet, holds: Vec<Quarantined>) {
        if holds.is_empty() {
            self.0.remove(fleet);
        } else {
            let holds = holds.into_iter().map(|hold| ((hold.target, hold.hash), hold.text)).collect();
            self.0.insert(fleet.clone(), holds);
        }
    }

    /// Adds those of another, each once.
    pub(crate) fn add(&mut self, others: &Shared) {
        for (fleet, holds) in &others.0 {
            let all = self.0.entry(fleet.clone()).or_default();
            for (what, text) in holds {
                // Errors differ from proxy to proxy; the least one is taken, so that all replicas have the same.
                let known = all.entry(what.clone()).or_insert_with(|| text.clone());
                if text < known {
                    known.clone_from(text);
                }
            }
        }
    }

    /// The changes that lead from these to the newer ones.
    pub(crate) fn changes(&self, newer: &Shared) -> Vec<QuarantineChange> {
        let mut changes = Vec::new();
        for (fleet, holds) in &self.0 {
            let new = newer.0.get(fleet);
            let gone = holds.iter().filter(|(what, _)| !new.is_some_and(|new| new.contains_key(*what)));
            changes.extend(gone.map(|entry| (fleet.clone(), hold(entry), false)));
        }
        for (fleet, holds) in &newer.0 {
            let old = self.0.get(fleet);
            let new = holds.iter().filter(|(what, text)| old.and_then(|old| old.get(*what)) != Some(*text));
            changes.extend(new.map(|entry| (fleet.clone(), hold(entry), true)));
        }
        changes
    }

    /// Applies changes.
    pub(crate) fn apply(&mut self, changes: Vec<QuarantineChange>) {
        for (fleet, Quarantined { target, hash, text }, is_held) in changes {
            let all = self.0.entry(fleet.clone()).or_default();
            if is_held {
                all.insert((target, hash), text);
            } else {
                all.remove(&(target, hash));
            }
            if all.is_empty() {
                self.0.remove(&fleet);
            }
        }
    }
}

fn hold(((target, hash), text): (&(QuarantineTarget, u64), &Arc<str>)) -> Quarantined {
    Quarantined { target: target.clone(), hash: *hash, text: text.clone() }
}

/// Replicas or proxies that have the same certificates, while those of the xDS connection are rotated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CertificateHolders {
    /// The names of some of them.
    pub names: Vec<String>,
    /// How many there are.
    pub count: usize,
    /// Whether they are proxies.
    pub is_proxy: bool,
    /// When the CAs expire that they trust, in seconds since 1970; none if that is not known.
    pub cas: Vec<i64>,
    /// Whether these are all that they trust, of those that the replica knows. Older versions do not say.
    pub is_complete: bool,
    /// When the certificate expires that they present, if they have one.
    pub leaf: Option<i64>,
}

/// From a follower to the leader.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct FollowerMessage {
    /// What it withholds from now on, or no longer withholds.
    pub quarantine_changes: Vec<QuarantineChange>,
    /// Counts that have changed.
    pub answers: Vec<(Question, FleetAckCounts)>,
    /// For counts that have changed, one of its proxies that refuses the version, or that none does any more.
    pub refusals: Vec<(Question, Option<Nack>)>,
    /// Resources that all its proxies of some version of Envoy rejected: do others accept them?
    pub rejections: Vec<Question>,
    /// The certificates that it and its proxies have, all of them ([`crate::holders`]), if that has changed.
    pub certificates: Option<Vec<CertificateHolders>>,
}

/// From the leader to a follower.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LeaderMessage {
    /// What others withhold from now on, or no longer.
    pub quarantine_changes: Vec<QuarantineChange>,
    /// Questions that are asked from now on, or no longer.
    pub asks: Vec<(Question, bool)>,
    /// Whether its rejections stand.
    pub outcomes: Vec<(Question, bool)>,
    /// Everything that held when the follower connected has been sent.
    pub synced: bool,
}

/// What replicas send each other.
pub(crate) trait ReplicaMessage: DeserializeOwned {
    /// The lists of which an element may be skipped. That of certificates is not among them: each replica that is missing from it
    /// would count as having none.
    const LISTS: &'static [&'static str];
}

impl ReplicaMessage for FollowerMessage {
    const LISTS: &'static [&'static str] = &["quarantine_changes", "answers", "refusals", "rejections"];
}

impl ReplicaMessage for LeaderMessage {
    const LISTS: &'static [&'static str] = &["quarantine_changes", "asks", "outcomes"];
}

/// How many elements of each list of a message were skipped.
type Skipped = BTreeMap<&'static str, usize>;

/// Reads the messages of one replica.
pub(crate) struct Reader {
    peer: SocketAddr,
    /// The lists of which elements were skipped: each is logged once, however many messages follow.
    logged: BTreeSet<&'static str>,
}

impl Reader {
    pub fn new(peer: SocketAddr) -> Self {
        Self { peer, logged: BTreeSet::new() }
    }

    /// Reads a message, without the elements of lists that this version cannot read.
    pub fn read<M: ReplicaMessage>(&mut self, bytes: &[u8]) -> serde_json::Result<M> {
        let (message, skipped) = known(bytes)?;
        let skipped = self.unlogged(skipped);
        if !skipped.is_empty() {
            info!(peer = %self.peer, ?skipped, "skipping elements of messages from a replica of another version, which this version does not know");
        }
        Ok(message)
    }

    /// Those of lists that were not logged yet, which count as logged from now on.
    fn unlogged(&mut self, mut skipped: Skipped) -> Skipped {
        skipped.retain(|list, _| self.logged.insert(*list));
        skipped
    }
}

/// What this version can read of a message, and how many elements of each list it cannot.
fn known<M: ReplicaMessage>(bytes: &[u8]) -> serde_json::Result<(M, Skipped)> {
    let mut skipped = Skipped::new();
    if let Ok(message) = serde_json::from_slice(bytes) {
        return Ok((message, skipped));
    }
    let mut message: Map<String, Value> = serde_json::from_slice(bytes)?;
    for &name in M::LISTS {
        let Some(Value::Array(list)) = message.get_mut(name) else { continue };
        let before = list.len();
        list.retain(|element| {
            let alone = Map::from_iter([(name.to_owned(), Value::Array(vec![element.clone()]))]);
            let read = serde_json::from_value::<M>(Value::Object(alone));
            read.inspect_err(|error| debug!(%error, name, "skipped an element of a list")).is_ok()
        });
        if list.len() < before {
            skipped.insert(name, before - list.len());
        }
    }
    Ok((serde_json::from_value(Value::Object(message))?, skipped))
}

#[cfg(test)]
mod tests {
    use super::*;
    use xds::AckCounts;

    fn hold(name: &str, hash: u64, text: &str) -> Quarantined {
        let target = QuarantineTarget { kind: Kind::Route, name: name.into(), host: Some("a.example.com".into()) };
        Quarantined { target, hash, text: text.into() }
    }

    fn question() -> Question {
        Question { fleet: Fleet::Shared, kind: Kind::Cluster, name: "c".into(), version: u64::MAX - 1 }
    }

    fn of_follower() -> FollowerMessage {
        let quarantine_changes = vec![(Fleet::named("shop", "edge"), hold("http", u64::MAX, "no"), true)];
        let question = question();
        let counts = FleetAckCounts::from([("1.40.0".into(), AckCounts { have: 1, ..AckCounts::default() })]);
        let answers = vec![(question.clone(), counts)];
        let refusal = Nack { node: "envoy-7xk".into(), text: "no".into() };
        let refusals = vec![(question.clone(), Some(refusal)), (question.clone(), None)];
        let holders = CertificateHolders { count: 2, cas: vec![7], leaf: Some(8), ..CertificateHolders::default() };
        let with_token = CertificateHolders { is_complete: true, leaf: None, ..holders.clone() };
        let certificates = Some(vec![holders, with_token]);
        let rejections = vec![question];
        FollowerMessage { quarantine_changes, answers, refusals, rejections, certificates }
    }

    fn of_leader() -> LeaderMessage {
        LeaderMessage {
            quarantine_changes: vec![(Fleet::Shared, hold("http", 1, "no"), false)],
            asks: vec![(question(), true), (question(), false)],
            outcomes: vec![(question(), false)],
            synced: true,
        }
    }

    #[test]
    #[allow(clippy::unwrap_used, reason = "a test may panic")]
    fn what_is_said_is_understood() {
        let message = of_follower();
        let text = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<FollowerMessage>(&text).unwrap(), message);
        let newer = text.replacen('{', r#"{"more": [1],"#, 1);
        assert_eq!(serde_json::from_str::<FollowerMessage>(&newer).unwrap(), message, "a newer replica may say more");
        let older = r#"{"certificates": [{"count": 1, "is_proxy": true, "cas": [7], "leaf": null}]}"#;
        let older = serde_json::from_str::<FollowerMessage>(older).unwrap().certificates.unwrap();
        assert!(older[0].cas == [7] && !older[0].is_complete, "an older replica says less: {older:?}");
        assert_eq!(serde_json::from_str::<LeaderMessage>("{}").unwrap(), LeaderMessage::default());
        let text = serde_json::to_string(&of_leader()).unwrap();
        assert_eq!(serde_json::from_str::<LeaderMessage>(&text).unwrap(), of_leader());
    }

    /// A message with one more element at both ends of each list that has resources: the same of a type that nobody knows.
    #[allow(clippy::unwrap_used, reason = "a test may panic")]
    fn of_newer_version(message: &impl Serialize) -> String {
        let mut message = serde_json::to_value(message).unwrap();
        let mut lists = 0;
        for list in message.as_object_mut().unwrap().values_mut().filter_map(serde_json::Value::as_array_mut) {
            let mut element = list[0].to_string();
            for kind in Kind::ALL {
                element = element.replace(&format!("\"kind\":\"{}\"", kind.label()), "\"kind\":\"newer\"");
            }
            if element.contains("newer") {
                lists += 1;
                list.insert(0, serde_json::from_str(&element).unwrap());
                list.push(serde_json::from_str(&element).unwrap());
            }
        }
        assert!(lists >= 3, "{message}");
        message.to_string()
    }

    #[test]
    #[allow(clippy::unwrap_used, reason = "a test may panic")]
    fn what_another_version_alone_knows_is_skipped_and_counted_and_the_rest_is_understood() {
        let of_all = |lists: &[&'static str]| lists.iter().map(|list| (*list, 2)).collect::<BTreeMap<_, _>>();
        let text = of_newer_version(&of_follower());
        let (message, skipped) = known::<FollowerMessage>(text.as_bytes()).unwrap();
        assert_eq!((message, skipped), (of_follower(), of_all(FollowerMessage::LISTS)));
        let text = of_newer_version(&of_leader());
        let (message, skipped) = known::<LeaderMessage>(text.as_bytes()).unwrap();
        assert_eq!((message, skipped), (of_leader(), of_all(LeaderMessage::LISTS)));
        let text = serde_json::to_string(&of_leader()).unwrap();
        assert_eq!(known(text.as_bytes()).unwrap(), (of_leader(), BTreeMap::new()), "nothing is skipped");
        for invalid in [r#"{"asks": 1}"#, "{"] {
            assert!(known::<LeaderMessage>(invalid.as_bytes()).is_err(), "{invalid}");
        }
        let certificates = r#"{"certificates": [{"count": 1}, {"count": "some"}]}"#;
        assert!(known::<FollowerMessage>(certificates.as_bytes()).is_err(), "no replica's certificates are skipped");
    }

    #[test]
    fn what_is_skipped_is_logged_once_for_each_list() {
        let mut reader = Reader::new(SocketAddr::from(([192, 0, 2, 1], 8001)));
        let skipped = |lists: &[&'static str]| lists.iter().map(|list| (*list, 2)).collect::<Skipped>();
        assert_eq!(reader.unlogged(skipped(&[])), skipped(&[]));
        assert_eq!(reader.unlogged(skipped(&["asks"])), skipped(&["asks"]));
        assert_eq!(reader.unlogged(skipped(&["asks", "outcomes"])), skipped(&["outcomes"]));
        assert_eq!(reader.unlogged(skipped(&["asks", "outcomes"])), skipped(&[]));
    }

    #[test]
    fn changes_make_one_the_other() {
        let of = |holds: &[Quarantined]| {
            let mut shared = Shared::default();
            shared.set(&Fleet::Shared, holds.to_vec());
            shared
        };
        let states = [
            of(&[]),
            of(&[hold("a", 1, "no")]),
            of(&[hold("a", 1, "no"), hold("b", 1, "no")]),
            of(&[hold("a", 1, "other words"), hold("b", 2, "no")]),
        ];
        for old in &states {
            for new in &states {
                let mut shared = old.clone();
                shared.apply(old.changes(new));
                assert_eq!(shared, *new);
            }
        }
    }
}
