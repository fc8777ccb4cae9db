#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod model;

use super::*;

const DAY: i64 = 24 * 3600;
const START: i64 = 1_800_000_000;

fn policy() -> Policy {
    Policy::default()
}

/// A replica and a proxy that have what the Secrets have.
fn holders(secrets: &Secrets) -> Vec<CertificateHolders> {
    let group = |role: Role| {
        let secret = secrets.of(role)?;
        Some(CertificateHolders {
            names: vec![format!("{role:?}")],
            count: 1,
            is_proxy: role == Role::Envoy,
            cas: secret.bundle.iter().map(|ca| ca.expires).collect(),
            is_complete: role == Role::Server,
            leaf: Some(secret.leaf.expires),
        })
    };
    Role::ALL.into_iter().filter_map(group).collect()
}

fn step(secrets: &Secrets, holders: &[CertificateHolders], now: i64) -> Step {
    next(secrets, &policy(), holders, "projectsesame", now).unwrap()
}

fn apply(secrets: &mut Secrets, step: &Step) -> bool {
    match step {
        Step::WriteCa(ca, _) => secrets.ca = Some((**ca).clone()),
        Step::WriteLeaf(Role::Server, secret, _) => secrets.server = Some((**secret).clone()),
        Step::WriteLeaf(Role::Envoy, secret, _) => secrets.envoy = Some((**secret).clone()),
        Step::Wait(..) | Step::NotYetValid(_) | Step::Idle | Step::Foreign => return false,
    }
    true
}

/// Takes steps until there is none; gives what was written and why.
fn work(secrets: &mut Secrets, now: i64) -> Vec<&'static str> {
    let mut done = Vec::new();
    loop {
        let step = step(secrets, &holders(secrets), now);
        if !apply(secrets, &step) {
            return done;
        }
        match step {
            Step::WriteCa(_, why) | Step::WriteLeaf(_, _, why) => done.push(why),
            _ => unreachable!("it was applied"),
        }
        assert!(done.len() < 10, "{done:?}");
    }
}

fn installed() -> Secrets {
    let mut secrets = Secrets::default();
    work(&mut secrets, START);
    secrets
}

#[test]
fn an_installation_gets_a_ca_and_two_certificates_at_once() {
    let mut secrets = Secrets::default();
    assert_eq!(work(&mut secrets, START), ["a CA", "a certificate", "a certificate"]);
    let ca = secrets.ca.clone().unwrap().current.unwrap().certificate;
    for role in Role::ALL {
        let secret = secrets.of(role).unwrap();
        assert!(secret.leaf.is_signed_by(&ca));
        assert_eq!(secret.bundle, std::slice::from_ref(&ca));
        assert_eq!(secret.leaf.expires, START + 120 * DAY);
    }
    assert_eq!(ca.expires, START + 3650 * DAY);
    assert_eq!(step(&secrets, &[], START + DAY), Step::Idle);
}

#[test]
fn certificates_are_renewed_when_a_third_of_their_life_is_left() {
    let mut secrets = installed();
    assert_eq!(step(&secrets, &[], START + 80 * DAY), Step::Idle);
    let why = "a new certificate, since the current one expires";
    assert_eq!(work(&mut secrets, START + 80 * DAY + 1), [why, why]);
    assert_eq!(secrets.server.unwrap().leaf.expires, START + 200 * DAY + 1);
}

#[test]
fn a_new_ca_takes_every_step_in_its_turn() {
    let mut secrets = installed();
    secrets.ca.as_mut().unwrap().is_requested = true;
    let old = secrets.ca.clone().unwrap().current.unwrap().certificate;
    let mut now = START + DAY;
    assert_eq!(work(&mut secrets, now), ["a new CA, as was asked for", "all CAs to trust", "all CAs to trust"]);
    let new = secrets.ca.clone().unwrap().next.unwrap().certificate;
    assert_eq!(secrets.server.as_ref().unwrap().bundle, [new.clone(), old.clone()]);
    assert!(secrets.server.as_ref().unwrap().leaf.is_signed_by(&old));
    now += 600;
    let certificate = "a certificate of the new CA";
    assert_eq!(work(&mut secrets, now), ["the next CA signs from now on", certificate, certificate]);
    assert_eq!(secrets.ca.clone().unwrap().current.unwrap().certificate, new);
    assert_eq!(secrets.envoy.as_ref().unwrap().bundle, [new.clone(), old]);
    let only = "no CA but the current one";
    now += 600;
    assert_eq!(work(&mut secrets, now), [only]);
    now += 600;
    assert_eq!(work(&mut secrets, now), [only]);
    assert_eq!(secrets.envoy.as_ref().unwrap().bundle, [new]);
    assert_eq!(step(&secrets, &holders(&secrets), now + DAY), Step::Idle);
}

#[test]
fn whoever_is_behind_is_waited_for_and_whoever_says_nothing_for_a_day() {
    let mut secrets = installed();
    secrets.ca.as_mut().unwrap().is_requested = true;
    let old = holders(&secrets);
    work(&mut secrets, START + DAY);
    let Step::Wait(waiting, _) = step(&secrets, &old, START + 20 * DAY) else { panic!("nobody trusts the new CA") };
    assert_eq!((waiting.behind_count, waiting.behind), (2, vec!["Server".to_owned(), "Envoy".to_owned()]));
    let mut silent = holders(&secrets);
    (silent[1].cas, silent[1].leaf) = (Vec::new(), None);
    let Step::Wait(waiting, _) = step(&secrets, &silent, START + DAY + 601) else { panic!("a proxy says nothing") };
    assert_eq!((waiting.behind_count, waiting.silent), (0, vec!["Envoy".to_owned()]));
    assert!(matches!(step(&secrets, &silent, START + 2 * DAY), Step::WriteCa(..)));
    // Before the old one expires the new one is used all the same.
    let end = START + 3650 * DAY;
    assert!(matches!(step(&secrets, &old, end - 31 * DAY), Step::Wait(..) | Step::WriteLeaf(..)));
    let mut late = secrets.clone();
    work(&mut late, end - 31 * DAY);
    assert!(matches!(step(&late, &old, end - 29 * DAY), Step::WriteCa(..)));
}

/// Such as one of a Gateway whose node does not say its CAs: nobody believes its statistics.
#[test]
fn a_proxy_that_reports_nothing_is_given_a_day_before_each_step() {
    let silent = |secrets: &Secrets| {
        let mut holders = holders(secrets);
        (holders[1].cas, holders[1].leaf) = (Vec::new(), None);
        holders
    };
    let waits_for = |secrets: &Secrets, now: i64| match step(secrets, &silent(secrets), now) {
        Step::Wait(waiting, _) => Some((waiting.behind_count, waiting.silent_count)),
        _ => None,
    };
    let mut secrets = installed();
    secrets.ca.as_mut().unwrap().is_requested = true;
    let trusted = START + DAY;
    work(&mut secrets, trusted);
    assert_eq!(waits_for(&secrets, trusted + 601), Some((0, 1)));
    let signed = trusted + DAY;
    assert_eq!(waits_for(&secrets, signed), None, "the next CA signs");
    work(&mut secrets, signed);
    assert_eq!(waits_for(&secrets, signed + 601), Some((0, 1)));
    assert_eq!(waits_for(&secrets, signed + DAY), None, "the old CA goes");
}

#[test]
fn a_proxy_with_a_token_that_says_all_its_cas_is_done_or_behind() {
    let with_token = |secrets: &Secrets| {
        let mut holders = holders(secrets);
        (holders[1].is_complete, holders[1].leaf) = (true, None);
        holders
    };
    let mut secrets = installed();
    secrets.ca.as_mut().unwrap().is_requested = true;
    let old = with_token(&secrets);
    work(&mut secrets, START + DAY);
    let new = with_token(&secrets);
    let waits_for = |proxy: CertificateHolders, now: i64| match step(&secrets, &[new[0].clone(), proxy], now) {
        Step::Wait(waiting, _) => (waiting.behind_count, waiting.silent_count),
        other => panic!("{other:?}"),
    };
    let settled = START + DAY + 600;
    // Its Deployment does not roll out: it has the old CA, or one that no replica knows.
    let unknown = CertificateHolders { cas: Vec::new(), ..old[1].clone() };
    for stuck in [&old[1], &unknown] {
        assert_eq!(waits_for(stuck.clone(), settled), (0, 1), "for a day: the key of the old CA may have leaked");
        let holders = [new[0].clone(), stuck.clone()];
        assert!(matches!(step(&secrets, &holders, START + 2 * DAY), Step::WriteCa(..)), "its owner does not decide");
    }
    let older = CertificateHolders { is_complete: false, ..new[1].clone() };
    assert_eq!(waits_for(older, settled), (0, 1), "an older bootstrap does not say all");
    assert!(matches!(step(&secrets, &new, settled), Step::WriteCa(..)), "it is rolled out");
    // It has no certificate to be waited for afterwards.
    work(&mut secrets, settled);
    assert!(matches!(step(&secrets, &with_token(&secrets), settled + 600), Step::WriteLeaf(Role::Server, ..)));
}

#[test]
fn a_proxy_with_a_token_that_is_behind_is_waited_for_where_the_ca_only_grows_old() {
    let mut secrets = installed();
    let third = START + 3650 * DAY - 3650 * DAY / 3;
    work(&mut secrets, third);
    let old = secrets.clone();
    work(&mut secrets, third + DAY);
    let mut holders = holders(&secrets);
    assert!(matches!(step(&secrets, &holders, third + 2 * DAY), Step::WriteCa(..)));
    let cas = old.envoy.as_ref().unwrap().bundle.iter().map(|ca| ca.expires).collect();
    holders[1] = CertificateHolders { cas, is_complete: true, leaf: None, ..holders[1].clone() };
    let Step::Wait(waiting, _) = step(&secrets, &holders, third + 20 * DAY) else { panic!("its rollout is stuck") };
    assert_eq!((waiting.behind_count, waiting.silent_count), (1, 0));
    // Somebody asks for a new CA meanwhile: that day is over.
    secrets.ca.as_mut().unwrap().is_requested = true;
    let Step::WriteCa(ca, _) = step(&secrets, &holders, third + 20 * DAY) else { panic!("its owner does not decide") };
    assert!(ca.is_requested, "the next CA was there before");
}

#[test]
fn a_ca_that_is_asked_for_when_it_would_be_due_waits_a_day_for_a_proxy_with_a_token() {
    let mut secrets = installed();
    let due = START + 3650 * DAY - 3650 * DAY / 3 + 1;
    secrets.ca.as_mut().unwrap().is_requested = true;
    let mut stuck = holders(&secrets)[1].clone();
    (stuck.is_complete, stuck.leaf) = (true, None);
    work(&mut secrets, due);
    assert!(secrets.ca.as_ref().unwrap().is_next_requested);
    let holders = [holders(&secrets)[0].clone(), stuck];
    assert!(matches!(step(&secrets, &holders, due + 601), Step::Wait(..)));
    let Step::WriteCa(ca, _) = step(&secrets, &holders, due + DAY) else { panic!("its owner does not decide") };
    assert!(!ca.is_requested && !ca.is_next_requested);
}

#[test]
fn a_ca_is_replaced_when_a_third_of_its_life_is_left() {
    let secrets = installed();
    let third = START + 3650 * DAY - 3650 * DAY / 3;
    let mut renewed = secrets.clone();
    work(&mut renewed, third);
    assert!(renewed.ca.as_ref().unwrap().next.is_none());
    let Step::WriteCa(ca, why) = step(&renewed, &[], third + 1) else { panic!("it expires") };
    assert_eq!(why, "a new CA, since the current one expires");
    assert!(ca.next.is_some());
}

#[test]
fn what_certgen_made_is_taken_over_and_what_others_made_is_left_alone() {
    let mut secrets = installed();
    secrets.ca = None;
    let old = secrets.server.clone().unwrap();
    assert_eq!(work(&mut secrets, START), ["a CA", "all CAs to trust", "all CAs to trust"]);
    let ca = secrets.ca.clone().unwrap();
    assert!(ca.current.is_none() && ca.next.is_some(), "{ca:?}");
    assert_eq!(secrets.server.as_ref().unwrap().leaf, old.leaf);
    // Without its key nothing was signed that proxies could show: they are waited for for a day.
    assert_eq!(work(&mut secrets, START + 600), [""; 0]);
    assert_eq!(work(&mut secrets, START + DAY).len(), 3);
    assert!(secrets.server.as_ref().unwrap().leaf.is_signed_by(&secrets.server.as_ref().unwrap().bundle[0]));

    secrets.is_foreign = true;
    assert_eq!(step(&secrets, &[], START + 5000 * DAY), Step::Foreign);
}

#[test]
fn a_clock_that_jumps_ends_no_rotation() {
    let mut secrets = installed();
    secrets.ca.as_mut().unwrap().is_requested = true;
    work(&mut secrets, START + DAY);
    // Half an hour back, in the middle: the time to wait begins anew, and no later than then.
    let back = START + DAY - 1800;
    assert_eq!(work(&mut secrets, back), ["all CAs to trust", "all CAs to trust"]);
    assert!(!work(&mut secrets, back + 600).is_empty());
    // Twenty years ahead: everything has expired, and is made anew without waiting for anybody.
    let mut secrets = installed();
    let old = holders(&secrets);
    let now = START + 7300 * DAY;
    let mut steps = 0;
    loop {
        let step = step(&secrets, &old, now);
        if !apply(&mut secrets, &step) {
            break;
        }
        steps += 1;
        assert!(steps < 20);
    }
    let ca = secrets.ca.unwrap().current.unwrap().certificate;
    assert!(ca.expires > now && secrets.server.unwrap().leaf.is_signed_by(&ca));
}

/// The replica that holds the lease had its clock ahead, renewed everything, and was set right. Certificates are replaced at once, a CA
/// when somebody asks for it.
#[test]
fn what_was_made_while_the_clock_was_ahead_is_replaced_once_it_is_right() {
    for ahead in [100 * DAY, 7300 * DAY] {
        let mut secrets = installed();
        let mut now = START + ahead;
        while !work(&mut secrets, now).is_empty() {
            now += 600;
        }
        let mut now = START + DAY;
        let begins = secrets.ca.as_ref().unwrap().current.as_ref().unwrap().certificate.begins;
        if begins > now {
            assert_eq!(step(&secrets, &holders(&secrets), now), Step::NotYetValid(begins));
            secrets.ca.as_mut().unwrap().is_requested = true;
        }
        let mut rounds = 0;
        while !work(&mut secrets, now).is_empty() || rounds < 3 {
            now += 600;
            rounds += 1;
        }
        assert!(now < START + 2 * DAY, "it took {} s", now - START - DAY);
        let ca = secrets.ca.clone().unwrap().current.unwrap().certificate;
        for role in Role::ALL {
            let LeafSecret { bundle, leaf, since, .. } = secrets.of(role).unwrap();
            assert_eq!(bundle, std::slice::from_ref(&ca), "{ahead}");
            assert!(leaf.is_signed_by(&ca) && *since <= now);
            for valid in [leaf, &ca] {
                assert!(valid.begins <= now && now < valid.expires, "{ahead}: {valid:?} at {now}");
            }
        }
    }
}

/// A replica whose clock is years behind gets the lease, with and without a rotation under way: it leaves everything as it is.
#[test]
fn a_clock_that_is_far_behind_replaces_no_ca_and_signs_nothing() {
    let begins = |ca: &Option<Ca>| ca.as_ref().unwrap().certificate.begins;
    let secrets = installed();
    let begun = begins(&secrets.ca.as_ref().unwrap().current);
    for now in [0, START - 3650 * DAY, START - DAY] {
        assert_eq!(step(&secrets, &holders(&secrets), now), Step::NotYetValid(begun), "at {now}");
    }
    assert_eq!(step(&secrets, &holders(&secrets), START), Step::Idle, "once the clock is right");

    let mut rotating = secrets.clone();
    rotating.ca.as_mut().unwrap().is_requested = true;
    work(&mut rotating, START + 10 * DAY);
    assert!(rotating.ca.as_ref().unwrap().next.is_some());
    assert_eq!(step(&rotating, &[], START - DAY), Step::NotYetValid(begun));
    // The current CA is valid by this clock, and the next one is not: it does not sign before it is.
    let mut behind = rotating.clone();
    work(&mut behind, START + DAY);
    assert_eq!(behind.ca, rotating.ca);
    let next = begins(&rotating.ca.as_ref().unwrap().next);
    assert_eq!(step(&behind, &[], START + 2 * DAY), Step::NotYetValid(next));
    assert_eq!(work(&mut rotating, START + 11 * DAY)[0], "the next CA signs from now on");
}

/// The time to settle and the wait for the silent are over by a clock that is far ahead; who is behind is waited for all the same.
#[test]
fn a_clock_that_is_far_ahead_skips_nobody_who_is_behind_while_the_ca_is_valid() {
    let ahead = START + 3000 * DAY;
    let mut secrets = installed();
    let old = holders(&secrets);
    let why = |step: &Step| match step {
        Step::WriteCa(_, why) | Step::WriteLeaf(_, _, why) | Step::Wait(_, why) => *why,
        _ => "",
    };
    let mut steps = Vec::new();
    loop {
        let step = step(&secrets, &old, ahead);
        steps.push(why(&step));
        if !apply(&mut secrets, &step) {
            break;
        }
    }
    let trust = "replicas and proxies to trust the next CA";
    assert_eq!(steps[0], "a new CA, since the current one expires");
    assert_eq!(steps.last(), Some(&trust), "{steps:?}");
    assert_eq!(why(&step(&secrets, &old, ahead + 30 * DAY)), trust, "the clock jumps on");

    // The same for the old CA, after the next one signs.
    let before = holders(&secrets);
    work(&mut secrets, ahead + 600);
    let have = "replicas and proxies to have certificates of the new CA";
    assert_eq!(why(&step(&secrets, &before, ahead + 30 * DAY)), have);
}

/// A clock that is behind by less than an hour, by which certificates are valid early, changes nothing.
#[test]
fn a_clock_that_is_a_little_behind_starts_no_rotation() {
    let mut secrets = installed();
    let all = "all CAs to trust";
    assert_eq!(work(&mut secrets, START - 3000), [all, all], "only the time is counted anew");
    assert!(secrets.ca.as_ref().unwrap().next.is_none());
    assert_eq!(step(&secrets, &holders(&secrets), START), Step::Idle);
}

/// Where the CA lasts no longer than the certificates, they are not made again and again.
#[test]
fn a_short_ca_makes_no_loop() {
    let mut secrets = installed();
    secrets.ca.as_mut().unwrap().is_requested = true;
    let old = holders(&secrets);
    let end = START + 3650 * DAY;
    for day in (end - 100 * DAY..end).step_by(usize::try_from(DAY).unwrap()) {
        let mut writes = 0;
        loop {
            let step = step(&secrets, &old, day);
            if !apply(&mut secrets, &step) {
                break;
            }
            writes += 1;
            assert!(writes < 10);
        }
    }
}
