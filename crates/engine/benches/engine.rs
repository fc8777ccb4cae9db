//! What the engine itself costs: the first build, one edit, one endpoint change, and an edit that reaches everything.
//!
//! Computations do next to nothing here, so that time and memory are those of the books: five reads for each translation (its
//! object, two services, a secret, the settings), one host, one page and one endpoint set for each. Our own harness: the
//! first build and its memory are measured once per size, which is not what criterion is made for.
//!
//! `cargo bench -p engine` prints a table; sizes may be given as arguments.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{Derived, Engine, Index, Input, Pipeline, Progress, Reads, Table};

type Name = (Arc<str>, Arc<str>);

#[derive(PartialEq)]
struct Object {
    host: Arc<str>,
    services: [Name; 2],
    secret: Name,
    revision: u64,
}

#[derive(PartialEq)]
struct Translation {
    host: Arc<str>,
    service: Name,
    sum: u64,
}

macro_rules! table {
    ($name:ident, $text:literal, $key:ty => $value:ty) => {
        struct $name;
        impl Table for $name {
            type Key = $key;
            type Value = $value;
            const NAME: &'static str = $text;
        }
    };
}

table!(Objects, "objects", Name => Object);
impl Input for Objects {}
table!(Services, "services", Name => u64);
impl Input for Services {}
table!(Secrets, "secrets", Name => u64);
impl Input for Secrets {}
table!(Slices, "slices", Name => (Name, u64));
impl Input for Slices {}
table!(Settings, "settings", () => u64);
impl Input for Settings {}

table!(Translations, "translations", Name => Translation);
impl Derived for Translations {
    fn compute(&self, key: &Name, reads: &mut Reads<'_>) -> Option<Translation> {
        let object = reads.get::<Objects>(key)?;
        let mut sum = object.revision + **reads.get::<Settings>(&())?;
        for service in &object.services {
            sum += reads.get::<Services>(service).map_or(0, |port| **port);
        }
        sum += reads.get::<Secrets>(&object.secret).map_or(0, |secret| **secret);
        Some(Translation { host: Arc::clone(&object.host), service: object.services[0].clone(), sum })
    }
}

struct ByHost;
impl Index for ByHost {
    type Of = Translations;
    type Key = Arc<str>;
    const NAME: &'static str = "by host";
    fn keys(_: &Name, translation: &Translation) -> impl IntoIterator<Item = Arc<str>> {
        [Arc::clone(&translation.host)]
    }
}

struct ByService;
impl Index for ByService {
    type Of = Translations;
    type Key = Name;
    const NAME: &'static str = "by service";
    fn keys(_: &Name, translation: &Translation) -> impl IntoIterator<Item = Name> {
        [translation.service.clone()]
    }
}

struct OfService;
impl Index for OfService {
    type Of = Slices;
    type Key = Name;
    const NAME: &'static str = "of service";
    fn keys(_: &Name, slice: &(Name, u64)) -> impl IntoIterator<Item = Name> {
        [slice.0.clone()]
    }
}

table!(Hosts, "hosts", Arc<str> => u64);
impl Derived for Hosts {
    fn compute(&self, host: &Arc<str>, reads: &mut Reads<'_>) -> Option<u64> {
        Some(
            reads
                .probe::<ByHost>(host)
                .filter_map(|key| reads.get::<Translations>(key))
                .map(|translation| translation.sum)
                .sum(),
        )
    }
}

table!(Pages, "pages", Arc<str> => u64);
impl Derived for Pages {
    fn compute(&self, host: &Arc<str>, reads: &mut Reads<'_>) -> Option<u64> {
        reads.get::<Hosts>(host).map(|sum| **sum)
    }
}

table!(EndpointSets, "endpoint sets", Name => u64);
impl Derived for EndpointSets {
    fn compute(&self, service: &Name, reads: &mut Reads<'_>) -> Option<u64> {
        Some(reads.probe::<OfService>(service).filter_map(|key| reads.get::<Slices>(key)).map(|slice| slice.1).sum())
    }
}

fn engine() -> Engine {
    let mut pipeline = Pipeline::new();
    pipeline.input::<Objects>();
    pipeline.input::<Services>();
    pipeline.input::<Secrets>();
    pipeline.input::<Slices>();
    pipeline.index::<OfService>();
    pipeline.input::<Settings>();
    pipeline.derived(Translations).each::<Objects>();
    pipeline.derived(Hosts).per::<ByHost>();
    pipeline.derived(EndpointSets).per::<ByService>().lane().output();
    pipeline.derived(Pages).each::<Hosts>().output();
    pipeline.build()
}

/// The names of one object and of what it refers to. Clones share the text, as objects from one source would.
struct Names {
    object: Name,
    service: Name,
    spare: Name,
    secret: Name,
    slice: Name,
    host: Arc<str>,
}

fn names(count: usize) -> Vec<Names> {
    let name = |kind: &str, i: usize| (Arc::from(format!("team-{}", i % 100)), Arc::from(format!("{kind}-{i}")));
    let make = |i| Names {
        object: name("shop", i),
        service: name("web", i),
        spare: name("web", (i + 1) % count),
        secret: name("cert", i % 500),
        slice: name("slice", i),
        host: Arc::from(format!("host-{i}.example.com")),
    };
    (0..count).map(make).collect()
}

fn object(names: &Names, revision: u64) -> Object {
    let services = [names.service.clone(), names.spare.clone()];
    Object { host: Arc::clone(&names.host), services, secret: names.secret.clone(), revision }
}

/// The memory of this process that is in use, in bytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split_whitespace().nth(1).and_then(|pages| pages.parse::<f64>().ok());
    pages.unwrap_or(f64::NAN) * 4096.0
}

fn micros(time: Duration, times: usize) -> f64 {
    time.as_secs_f64() * 1e6 / times as f64
}

fn measure(count: usize) {
    const EDITS: usize = 1000;
    let names = names(count);
    let mut engine = engine();

    let before = resident();
    let started = Instant::now();
    for it in &names {
        engine.set::<Objects>(&it.object, object(it, 0));
        engine.set::<Services>(&it.service, 80u64);
        engine.set::<Secrets>(&it.secret, 1u64);
        engine.set::<Slices>(&it.slice, (it.service.clone(), 1u64));
    }
    engine.set::<Settings>(&(), 1u64);
    let (load, loaded) = (started.elapsed(), resident());

    let started = Instant::now();
    engine.settle();
    let (build, built) = (started.elapsed(), resident());
    let computed = engine.last_batch().computed;
    assert_eq!(engine.changes::<Pages>().set.len(), count);
    engine.changes::<EndpointSets>();

    let spread = |i: usize| &names[i * 7919 % count];
    let started = Instant::now();
    for i in 0..EDITS {
        engine.set::<Objects>(&spread(i).object, object(spread(i), 1 + i as u64));
        engine.settle();
        black_box(engine.changes::<Pages>());
    }
    let edit = started.elapsed();

    let started = Instant::now();
    for i in 0..EDITS {
        engine.set::<Slices>(&spread(i).slice, (spread(i).service.clone(), 2 + i as u64));
        let _ = engine.drain_lane(Duration::from_millis(10));
        black_box(engine.changes::<EndpointSets>());
    }
    let lane = started.elapsed();

    engine.settle();
    engine.set::<Settings>(&(), 2u64);
    let (started, mut longest) = (Instant::now(), Duration::ZERO);
    loop {
        let slice = Instant::now();
        let progress = engine.run(Duration::from_millis(10));
        longest = longest.max(slice.elapsed());
        if progress == Progress::Settled {
            break;
        }
    }
    let all = started.elapsed();

    let started = Instant::now();
    engine.self_check().expect("the benchmark's tables are pure");
    let check = started.elapsed();

    let row = |bytes: f64, rows: usize| bytes / rows as f64;
    println!("{count} translations, {computed} derived rows");
    println!(
        "  set inputs        {:8.1} ms   {:5.0} B/input row",
        load.as_secs_f64() * 1e3,
        row(loaded - before, 3 * count)
    );
    println!(
        "  first build       {:8.1} ms   {:5.2} µs/row   {:5.0} B/derived row",
        build.as_secs_f64() * 1e3,
        micros(build, computed as usize),
        row(built - loaded, computed as usize)
    );
    println!("  one edit          {:8.2} µs", micros(edit, EDITS));
    println!("  one endpoint      {:8.2} µs", micros(lane, EDITS));
    println!(
        "  an edit to all    {:8.1} ms   longest slice of 10 ms: {:.2} ms",
        all.as_secs_f64() * 1e3,
        longest.as_secs_f64() * 1e3
    );
    println!("  self-check        {:8.1} ms", check.as_secs_f64() * 1e3);
}

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|size| size.parse().ok()).collect();
    for size in if sizes.is_empty() { vec![10_000, 50_000] } else { sizes } {
        measure(size);
    }
}
