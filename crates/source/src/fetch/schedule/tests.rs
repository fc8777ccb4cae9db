//! The schedule by itself: keys of two tenants, and a clock that is turned by hand.

use super::*;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Name(Arc<str>, u32);

impl Key for Name {
    fn tenant(&self) -> &Arc<str> {
        &self.0
    }
}

const SECOND: Duration = Duration::from_secs(1);

fn schedule() -> Schedule<Name> {
    Schedule::new(Limits {
        total: 4,
        per_tenant: 3,
        shortest_pause: SECOND,
        longest_pause: 300 * SECOND,
        unreachable_pause: 4 * SECOND,
        deadline: 10 * SECOND,
    })
}

fn name(tenant: &str, number: u32) -> Name {
    Name(tenant.into(), number)
}

fn all(schedule: &mut Schedule<Name>, now: Instant) -> Vec<Name> {
    std::iter::from_fn(|| schedule.next(now)).collect()
}

#[test]
fn one_tenant_takes_neither_all_places_nor_every_turn() {
    let (mut schedule, now) = (schedule(), Instant::now());
    for number in 0..3000 {
        schedule.want(name("a", number), now);
    }
    assert_eq!(all(&mut schedule, now), [name("a", 0), name("a", 1), name("a", 2)]);
    // All of them hang, and another is served at once, and again.
    for number in 0..10 {
        schedule.want(name("b", number), now);
        assert_eq!(all(&mut schedule, now), [name("b", number)]);
        assert!(schedule.done(&name("b", number), Outcome::Answered, now));
    }
    // Where there is room they take turns.
    for number in 10..13 {
        schedule.want(name("b", number), now);
    }
    assert_eq!(all(&mut schedule, now), [name("b", 10)]);
    schedule.done(&name("a", 0), Outcome::Answered, now);
    schedule.done(&name("a", 1), Outcome::Answered, now);
    assert_eq!(all(&mut schedule, now), [name("b", 11), name("a", 3)]);
}

#[test]
fn failures_back_off_for_each_key_and_are_forgotten_with_it() {
    let (mut schedule, begin) = (schedule(), Instant::now());
    let key = name("a", 1);
    schedule.want(key.clone(), begin);
    let mut now = begin;
    for seconds in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
        assert_eq!(schedule.next(now), Some(key.clone()));
        assert!(schedule.done(&key, Outcome::Refused, now), "a refusal is an answer");
        assert_eq!(schedule.next_at(), Some(now + seconds * SECOND));
        assert_eq!(schedule.next(now + seconds * SECOND - Duration::from_millis(1)), None);
        now += seconds * SECOND;
    }
    // Another key of the same tenant is not its concern.
    schedule.want(name("a", 2), now);
    assert_eq!(all(&mut schedule, now).len(), 2);
    schedule.done(&name("a", 2), Outcome::Answered, now);
    // What the server asks for is kept to, and a change of the object ends it.
    schedule.done(&key, Outcome::Failed(Some(3600 * SECOND)), now);
    assert_eq!(schedule.next_at(), Some(now + 300 * SECOND));
    schedule.refresh(&key);
    assert_eq!(schedule.next(now), Some(key.clone()));
    schedule.done(&key, Outcome::Failed(Some(7 * SECOND)), now);
    assert_eq!(schedule.next_at(), Some(now + 7 * SECOND));
    // Nobody wants it any more.
    schedule.forget(&key);
    schedule.forget(&name("a", 2));
    assert_eq!((schedule.next_at(), schedule.states.len(), schedule.tenants.len()), (None, 0, 0));
    // Wanted again it begins anew.
    schedule.want(key.clone(), now);
    assert_eq!(schedule.next(now), Some(key.clone()));
    schedule.done(&key, Outcome::Refused, now);
    assert_eq!(schedule.next_at(), Some(now + SECOND));
}

#[test]
fn what_may_pass_is_told_after_the_deadline_and_what_waits_behind_it_too() {
    let (mut schedule, begin) = (schedule(), Instant::now());
    for number in 0..5 {
        schedule.want(name("a", number), begin);
    }
    assert_eq!(all(&mut schedule, begin).len(), 3);
    // One is busy for long, the others hang until the deadline.
    assert!(!schedule.done(&name("a", 0), Outcome::Failed(Some(60 * SECOND)), begin));
    assert_eq!(schedule.next(begin), Some(name("a", 3)));
    let late = begin + 10 * SECOND;
    for number in 1..4 {
        assert!(schedule.done(&name("a", number), Outcome::Failed(None), late), "{number} was given up");
    }
    assert_eq!(schedule.overdue(late), [name("a", 0), name("a", 4)]);
    assert!(schedule.overdue(late + 60 * SECOND).is_empty(), "told once");
}

#[test]
fn a_tenant_with_much_to_fetch_is_not_given_up_while_it_is_served() {
    let (mut schedule, begin) = (schedule(), Instant::now());
    for number in 0..100 {
        schedule.want(name("a", number), begin);
    }
    for second in 0..30 {
        let now = begin + second * SECOND;
        assert!(schedule.overdue(now).is_empty(), "after {second} s");
        for key in all(&mut schedule, now) {
            schedule.done(&key, Outcome::Answered, now);
        }
    }
}

#[test]
fn without_a_server_nothing_is_told_and_its_return_ends_the_pause() {
    let (mut schedule, begin) = (schedule(), Instant::now());
    for number in 0..5 {
        schedule.want(name("a", number), begin);
    }
    let mut now = begin;
    for _ in 0..20 {
        for key in all(&mut schedule, now) {
            assert!(!schedule.done(&key, Outcome::Unreachable, now));
        }
        now += 4 * SECOND;
        assert!(schedule.overdue(now).is_empty(), "after {:?}", now - begin);
    }
    while let Some(key) = schedule.next(now) {
        schedule.done(&key, Outcome::Unreachable, now);
    }
    assert!(schedule.next_at() > Some(now), "all of them pause");
    schedule.reachable();
    assert_eq!(all(&mut schedule, now).len(), 3);
}

#[test]
fn what_is_forgotten_and_wanted_again_while_it_is_fetched_is_fetched_again() {
    let (mut schedule, now) = (schedule(), Instant::now());
    let key = name("a", 1);
    schedule.want(key.clone(), now);
    assert_eq!(schedule.next(now), Some(key.clone()));
    schedule.forget(&key);
    schedule.want(key.clone(), now);
    assert!(schedule.done(&key, Outcome::Answered, now));
    assert_eq!(schedule.next(now), Some(key.clone()), "the answer may be older than the question");
    schedule.forget(&key);
    assert!(!schedule.done(&key, Outcome::Answered, now));
    assert_eq!((schedule.states.len(), schedule.tenants.len(), schedule.running), (0, 0, 0));
}
