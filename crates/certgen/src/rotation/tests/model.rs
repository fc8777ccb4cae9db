//! Replicas and proxies that take up Secrets whenever they please, a lease holder that crashes between any two steps, and a
//! clock: at no moment does anybody present a certificate to somebody who does not trust it.

use proptest::prelude::*;
use proptest::test_runner::Config;

use super::*;

const SETTLE: i64 = 600;

/// What somebody has loaded.
#[derive(Clone)]
struct Loaded {
    role: Role,
    bundle: Vec<Certificate>,
    leaf: Certificate,
    /// Whether it is a proxy that presents a token in place of the certificate.
    has_token: bool,
    /// Whether it reports what it has. Who does not, takes up a Secret before the time to settle is over.
    reports: bool,
    /// Since when there is something newer.
    stale_since: Option<i64>,
}

impl Loaded {
    fn trusts(&self, other: &Loaded) -> bool {
        self.bundle.iter().any(|ca| other.leaf.is_signed_by(ca))
    }

    fn report(&self) -> CertificateHolders {
        let mut cas: Vec<i64> = self.bundle.iter().map(|ca| ca.expires).collect();
        let is_proxy = self.role == Role::Envoy;
        // A proxy with a certificate says only which of its CAs expires first.
        if is_proxy && !self.has_token {
            cas.sort_unstable();
            cas.truncate(1);
        }
        let leaf = (!self.has_token).then_some(self.leaf.expires);
        let (cas, leaf) = if self.reports { (cas, leaf) } else { (Vec::new(), None) };
        let is_complete = self.reports && (!is_proxy || self.has_token);
        CertificateHolders { names: Vec::new(), count: 1, is_proxy, cas, is_complete, leaf }
    }
}

#[derive(Clone, Debug)]
enum Event {
    /// The lease holder reads the Secrets, takes a step, and may be gone right after it.
    Step,
    /// Somebody takes up its Secret.
    Refresh(usize),
    /// Somebody starts, with the Secret as it is: a proxy or not, with a token or not, reporting or not.
    Start(bool, bool, bool),
    /// Somebody ends.
    End(usize),
    /// Time passes, in seconds.
    Pass(i64),
    /// Much time passes, in days.
    PassDays(i64),
    /// Somebody asks for a new CA.
    Request,
    /// Reports of now are used until the next of these: a lease holder may see what was a while ago.
    Report,
    /// The Secret of the CA is lost.
    LoseCa,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        10 => Just(Event::Step),
        8 => (0usize..8).prop_map(Event::Refresh),
        1 => any::<(bool, bool, bool)>().prop_map(|(proxy, token, reports)| Event::Start(proxy, token, reports)),
        1 => (0usize..8).prop_map(Event::End),
        4 => (0..2000i64).prop_map(Event::Pass),
        1 => prop_oneof![Just(20), Just(400), Just(4000)].prop_map(Event::PassDays),
        1 => Just(Event::Request),
        4 => Just(Event::Report),
        1 => Just(Event::LoseCa),
    ]
}

struct World {
    secrets: Secrets,
    all: Vec<Loaded>,
    reports: Vec<CertificateHolders>,
    now: i64,
}

impl World {
    fn new() -> World {
        let mut world = World { secrets: installed(), all: Vec::new(), reports: Vec::new(), now: START };
        for reports in [true, true] {
            world.start(false, false, reports);
        }
        for (token, reports) in [(false, true), (false, false), (true, true)] {
            world.start(true, token, reports);
        }
        world.report();
        world
    }

    fn start(&mut self, proxy: bool, token: bool, reports: bool) {
        let role = if proxy { Role::Envoy } else { Role::Server };
        let secret = self.secrets.of(role).unwrap();
        let (bundle, leaf) = (secret.bundle.clone(), secret.leaf.clone());
        self.all.push(Loaded { role, bundle, leaf, has_token: proxy && token, reports, stale_since: None });
    }

    fn refresh(&mut self, which: usize) {
        if let Some(one) = self.all.get_mut(which) {
            let secret = self.secrets.of(one.role).unwrap();
            (one.bundle, one.leaf) = (secret.bundle.clone(), secret.leaf.clone());
            one.stale_since = None;
        }
    }

    fn report(&mut self) {
        self.reports = self.all.iter().map(Loaded::report).collect();
    }

    /// Time passes. Whoever says nothing is not behind for longer than the time to settle.
    fn pass(&mut self, seconds: i64) {
        self.now += seconds;
        for which in 0..self.all.len() {
            let late = self.all[which].stale_since.is_some_and(|since| self.now - since >= SETTLE);
            if late && !self.all[which].reports {
                self.refresh(which);
            }
        }
    }

    /// Days pass, in which all take up their Secrets, and what is to be done is done.
    fn pass_days(&mut self, days: i64) {
        for _ in 0..days / 20 {
            self.work();
            self.now += 20 * DAY;
        }
        self.work();
    }

    /// All take up their Secrets and say so, until there is nothing to do.
    fn work(&mut self) {
        for _ in 0..40 {
            (0..self.all.len()).for_each(|which| self.refresh(which));
            self.all.iter_mut().for_each(|one| one.reports = true);
            self.report();
            self.step();
            self.check();
            self.pass(10 * SETTLE);
        }
    }

    fn step(&mut self) {
        let step = step(&self.secrets.clone(), &self.reports, self.now);
        apply(&mut self.secrets, &step);
        if let Step::WriteLeaf(role, ..) = step {
            for one in self.all.iter_mut().filter(|one| one.role == role) {
                one.stale_since.get_or_insert(self.now);
            }
        }
    }

    fn check(&self) {
        for one in &self.all {
            for other in &self.all {
                let meet = (one.role == Role::Server || other.role == Role::Server) && !other.has_token;
                assert!(
                    !meet || one.trusts(other),
                    "at {}: {:?} trusts {:?}, {:?} presents {:?}",
                    self.now - START,
                    one.role,
                    one.bundle,
                    other.role,
                    other.leaf
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(Config { cases: 64, failure_persistence: None, ..Config::default() })]

    #[test]
    fn nobody_meets_a_certificate_that_it_does_not_trust(events in prop::collection::vec(event(), 1..120)) {
        let mut world = World::new();
        for event in events {
            match event {
                Event::Step => world.step(),
                Event::Refresh(which) => world.refresh(which),
                Event::Start(proxy, token, reports) if world.all.len() < 8 => {
                    world.start(proxy, token, reports);
                    world.report();
                }
                Event::Start(..) => {}
                Event::End(which) => if which < world.all.len() { world.all.remove(which); },
                Event::Pass(seconds) => world.pass(seconds),
                Event::PassDays(days) => world.pass_days(days),
                Event::Request => if let Some(ca) = &mut world.secrets.ca { ca.is_requested = true },
                Event::Report => world.report(),
                Event::LoseCa => world.secrets.ca = None,
            }
            world.check();
        }
        // Whatever has happened: when all take up their Secrets, the rotation ends.
        for _ in 0..4 {
            world.work();
        }
        let ca = world.secrets.ca.clone().unwrap();
        prop_assert!(ca.next.is_none());
        for role in Role::ALL {
            let secret = world.secrets.of(role).unwrap();
            prop_assert_eq!(&secret.bundle, &vec![ca.current.clone().unwrap().certificate]);
            prop_assert!(secret.leaf.is_signed_by(&secret.bundle[0]));
        }
    }
}
