//! A replica whose process may open no more files, beside an Envoy that it serves: what is open goes on, what needs another file is
//! tried again, and neither the log nor the processor is filled by that.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use testbed::certs::Ca;
use testbed::{Backend, Client, Process, StateDir};

use crate::bed::{Bed, TIMEOUT, app};
use crate::outage::{MOST_MEMORY, certificate_is_served, with_certificate};

/// How many clients try to connect to each port meanwhile.
const CLIENTS: usize = 16;
/// How many requests Envoy answers meanwhile: ten seconds of them.
const MEANWHILE: u64 = 2000;
/// How many lines may be logged at once, and how many more every ten seconds.
const LINES: usize = 8;

/// Sets how many files a process may have open, and gives what it was before.
fn set_limit(process: &Process, limit: Rlimit) -> Rlimit {
    let id = Pid::from_raw(i32::try_from(process.id()).unwrap());
    prlimit(id, Resource::Nofile, limit).unwrap()
}

/// The lowest number that no open file of a process has. With it as the limit nothing more can be opened.
fn lowest_unused(process: &Process) -> u64 {
    let open: Vec<u64> = std::fs::read_dir(format!("/proc/{}/fd", process.id()))
        .unwrap()
        .map(|file| file.unwrap().file_name().to_str().unwrap().parse().unwrap())
        .collect();
    (0..).find(|number| !open.contains(number)).unwrap()
}

/// Sets the limit of a process so that it can open nothing more, and gives what it was before.
fn exhaust(process: &Process) -> Rlimit {
    // The hard limit stays as this process has it, and so its child: to raise it takes a right.
    let at = |lowest: u64| Rlimit { current: Some(lowest), ..getrlimit(Resource::Nofile) };
    let mut lowest = lowest_unused(process);
    let before = set_limit(process, at(lowest));
    // It may have closed a file since its numbers were read: that number can be used again.
    loop {
        let unused = lowest_unused(process);
        if unused >= lowest {
            return before;
        }
        lowest = unused;
        set_limit(process, at(lowest));
    }
}

/// For how long a process has used a processor.
fn busy(process: &Process) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap();
    let fields = stat.rsplit(')').next().unwrap().split(' ');
    let ticks: u64 = fields.skip(12).take(2).map(|number| number.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

#[tokio::test(flavor = "multi_thread")]
async fn without_file_descriptors_streams_go_on_and_all_else_is_made_good_afterwards() {
    let (bed, ca) = (Bed::start().await, Ca::new("files"));
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("files").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let (cache, key) = (StateDir::new("cache").unwrap(), bed.file("cache.key", &"0f".repeat(32)));
    let flags = [("cache-dir", cache.path().to_str().unwrap()), ("cache-key-file", key.to_str().unwrap())];
    let address = testbed::Net::here().unwrap().address();
    let replica = bed.replica_at("sesame-0", address, &flags).await.ready().await;
    replica.expect_metric("sesame_leader", "", |leader| leader == 1.0).await;
    replica.expect_metric("sesame_disk_cache_enabled", "", |enabled| enabled == 1.0).await;
    let envoy = bed.envoy(replica.xds()).await;
    envoy.ready().await.unwrap();
    bed.answers("web.example.com", 200).await;
    replica.in_step(1).await;
    let memory = replica.memory().await;
    let load = bed.load("web.example.com");
    load.answered(100).await;

    let probe = Client::new((replica.address, 8000).into()).connect().await.unwrap();
    assert_eq!(probe.get("/healthz").await.unwrap().status, 200);
    let (lines, worked, began) = (replica.process.log().text().lines().count(), busy(&replica.process), Instant::now());
    let limit = exhaust(&replica.process);
    // The kernel lets them in, and the process cannot.
    let ports = [8000, 8001, 6060];
    let clients = ports.iter().flat_map(|port| (0..CLIENTS).map(|_| TcpStream::connect((replica.address, *port))));
    let clients: Vec<TcpStream> = clients.map(Result::unwrap).collect();
    replica.process.expect_line("cannot accept connections", TIMEOUT).await.unwrap();

    // What open watches bring reaches Envoy over its open stream, and a connection that is open is answered.
    bed.api.apply(&app(&namespace, "meanwhile", &backend)).await.unwrap();
    bed.api.apply(&with_certificate(&namespace, &ca, &backend)).await.unwrap();
    bed.answers("meanwhile.example.com", 200).await;
    // The disk cache could not be written, and is tried again minutes later.
    let line = replica.process.expect_line("SES1037", TIMEOUT).await.unwrap();
    assert!(line.contains("Too many open files"), "{line}");
    load.answered(MEANWHILE).await;
    assert_eq!(probe.get("/healthz").await.unwrap().status, 200);
    let (used, took) = (busy(&replica.process) - worked, began.elapsed());
    let log = replica.process.log().text();
    let during: Vec<&str> = log.lines().skip(lines).filter(|line| !line.contains("DEBUG")).collect();
    println!("{used:?} of processor time in {took:?}, lines:\n{}", during.join("\n"));
    assert!(during.len() <= LINES * (1 + took.as_secs() as usize / 10), "{during:#?}");
    assert!(used < took / 2, "{used:?} of processor time in {took:?}");

    drop(clients);
    set_limit(&replica.process, limit);
    replica.process.expect_line("accepting connections again", TIMEOUT).await.unwrap();
    let grown = replica.memory().await - memory;
    assert!(grown < MOST_MEMORY, "{grown} bytes more");
    assert_eq!(replica.page("/healthz").await.unwrap().0, 200);
    let replica = replica.ready().await;
    bed.api.apply(&app(&namespace, "after", &backend)).await.unwrap();
    bed.answers("after.example.com", 200).await;
    certificate_is_served(&bed, &ca).await;
    replica.expect_metric("sesame_leader", "", |leader| leader == 1.0).await;
    let another = bed.envoy(replica.xds()).await;
    another.ready().await.unwrap();
    replica.in_step(2).await;
    let ended = replica.metric("sesame_xds_streams_ended_total", "").await;
    assert_eq!(ended, 0.0, "the stream was ended");
    load.stop().await.assert_nothing_lost();
}
