//! The certificates that a replica reports, small enough for a message.
//!
//! In: groups of those that have the same certificates, as many as there are. Out: as many as fit. They are always sent together, since
//! a leader takes each report for all that there is: one of an earlier version, which knows nothing of pages, would take proxies on
//! a later page for proxies that are gone. The proxies that are left become one group of which nothing is known, as of proxies that do
//! not answer: a rotation waits for it.

use crate::{message::CertificateHolders, page::PAGE};

/// How many bytes the groups of a replica may have in a message.
const MOST: usize = PAGE / 2;
/// How many bytes of a name are sent. Names of pods are no longer.
const NAME: usize = 253;
/// How many names are kept of proxies of which nothing is known.
const LISTED: usize = 3;

/// The same, with long names cut off, and with one group for all proxies that are too many.
pub(crate) fn bounded(groups: Vec<CertificateHolders>) -> Vec<CertificateHolders> {
    let mut room = MOST;
    let mut kept = Vec::new();
    let mut unknown = CertificateHolders { is_proxy: true, ..CertificateHolders::default() };
    for mut group in groups {
        group.names.iter_mut().for_each(cut);
        let bytes = serde_json::to_vec(&group).map_or(0, |json| json.len() + 1);
        if bytes <= room || !group.is_proxy {
            room = room.saturating_sub(bytes);
            kept.push(group);
        } else {
            unknown.count += group.count;
            let free = LISTED.saturating_sub(unknown.names.len());
            unknown.names.extend(group.names.into_iter().take(free));
        }
    }
    kept.extend((unknown.count > 0).then_some(unknown));
    kept
}

fn cut(name: &mut String) {
    let mut end = name.len().min(NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(name: &str, count: usize, leaf: i64) -> CertificateHolders {
        let names = vec![name.to_owned()];
        CertificateHolders { names, count, is_proxy: true, cas: vec![1], leaf: Some(leaf), ..Default::default() }
    }

    #[test]
    fn a_report_of_usual_size_is_sent_as_it_is() {
        let replica = CertificateHolders { names: vec!["sesame-0".to_owned()], count: 1, ..Default::default() };
        let groups = vec![replica, proxies("envoy-0", 2_000, 7), proxies("envoy-1", 1, 8)];
        assert_eq!(bounded(groups.clone()), groups);
        assert!(bounded(Vec::new()).is_empty());
    }

    #[test]
    fn proxies_that_are_too_many_are_one_group_of_which_nothing_is_known() {
        let replica = CertificateHolders { names: vec!["sesame-0".to_owned()], count: 1, ..Default::default() };
        let groups = (0..20_000).map(|at| proxies(&format!("envoy-{at}"), 2, at)).chain([replica.clone()]).collect();
        let bounded = bounded(groups);
        let bytes = serde_json::to_vec(&bounded).map_or(0, |json| json.len());
        assert!(bytes <= MOST + 1_000, "{bytes} bytes");
        assert!(bounded.contains(&replica), "a replica is never left out");
        assert_eq!(bounded.iter().map(|group| group.count).sum::<usize>(), 40_001, "all are counted");
        let unknown: Vec<_> = bounded.iter().filter(|group| group.is_proxy && group.cas.is_empty()).collect();
        let [unknown] = unknown[..] else { panic!("one group: {unknown:?}") };
        assert_eq!((unknown.names.len(), unknown.is_complete, unknown.leaf), (LISTED, false, None));
    }

    #[test]
    fn a_name_that_a_proxy_chose_takes_no_more_room_than_that_of_a_pod() {
        let groups = bounded(vec![proxies(&"é".repeat(40_000), 1, 7)]);
        assert_eq!(groups[0].names[0], "é".repeat(NAME / 2));
    }
}
