//! A server whose process may open no more files. It is a process of its own: the limit holds for all of it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]
#![allow(dead_code, reason = "the clients are those of the other tests of the service")]

#[path = "service/client.rs"]
mod client;

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::time::{sleep, timeout};
use xds::Kind;

use client::{DELTA_ADS, Delta, Running, names, node, resource};

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// How many lines of the log say that.
fn count_in_log(words: &str) -> usize {
    String::from_utf8_lossy(&LOG.lock().unwrap()).lines().filter(|line| line.contains(words)).count()
}

/// How long this process has used a processor, from a file that is open already.
fn busy(file: &mut File) -> Duration {
    let mut stat = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut stat).unwrap();
    let ticks: u64 =
        stat.rsplit(')').next().unwrap().split(' ').skip(12).take(2).map(|n| n.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

#[tokio::test]
async fn without_file_descriptors_streams_go_on_and_new_connections_wait() {
    tracing_subscriber::fmt().with_writer(|| Log).init();
    let running = Running::insecure().await;
    running.publish(vec![resource(Kind::Listener, "a", "1")], &[]);
    let mut stream = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    stream.subscribe(Some(node("a", "shared")), Kind::Listener, &[]).await;
    let first = stream.next().await;
    stream.ack(&first).await;

    // Clients that the kernel has let in and the server has not: no task runs between these lines.
    let waiting: Vec<TcpStream> = (0..8).map(|_| TcpStream::connect(running.address).unwrap()).collect();
    let mut stat = File::open("/proc/self/stat").unwrap();
    let before = getrlimit(Resource::Nofile);
    // The folder that is read needs one itself.
    let open = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64 - 1;
    setrlimit(Resource::Nofile, Rlimit { current: Some(open), maximum: before.maximum }).unwrap();

    let began = busy(&mut stat);
    sleep(Duration::from_secs(2)).await;
    let used = busy(&mut stat).saturating_sub(began);
    assert!(used < Duration::from_millis(500), "waiting for a file took {used:?} of processor time");
    assert_eq!(count_in_log("cannot accept"), 1, "{}", String::from_utf8_lossy(&LOG.lock().unwrap()));
    running.publish(vec![resource(Kind::Listener, "b", "1")], &[]);
    let second = timeout(Duration::from_secs(5), stream.next()).await.expect("open streams are served");
    assert_eq!(names(&second), ["b"]);

    // Connections end, and others are let in.
    drop(waiting);
    setrlimit(Resource::Nofile, before).unwrap();
    let mut late = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    late.subscribe(Some(node("b", "shared")), Kind::Listener, &[]).await;
    assert_eq!(late.next().await.resources.len(), 2);
    assert_eq!(count_in_log("accepting connections again"), 1);
}
