//! The server's process, and the hand that moves it.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use xds::{Batch, Changes, Config, Fleet, Kind, Security, Server};

use super::world::{KINDS, resource};

/// Serves and does what it is told, line by line.
pub fn serve() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let server = Server::new(Config::default());
    let mut registry = Registry::default();
    server.register(&mut registry);
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    println!("{}", listener.local_addr().unwrap());
    let serving = server.clone();
    runtime.spawn(async move { serving.serve(listener, Security::Insecure, std::future::pending()).await });
    let publish = |upserts| {
        let changes = Changes { upserts, removes: vec![] };
        server.publish(Batch { fleet: Fleet::Shared, changes }).unwrap();
    };
    let count = |metric: &str| {
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let values = text.lines().filter(|line| line.starts_with(metric));
        values.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as usize
    };
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let (verb, number) = line.split_once(' ').unwrap();
        let number: usize = number.parse().unwrap();
        match verb {
            "fill" => {
                publish(KINDS.into_iter().flat_map(|kind| (0..number).map(move |at| resource(kind, at, 0))).collect());
            }
            "change" => publish(vec![resource(Kind::ScopedRoute, 7, number + 1)]),
            "answers" => {
                let mut answers = server.acks(&Fleet::Shared).unwrap().answers();
                runtime.block_on(answers.wait_for(|count| *count >= number as u64)).unwrap();
            }
            "encodes" => {
                println!("{}", count("sesame_xds_encodes_total"));
                continue;
            }
            _ => panic!("{line}"),
        }
        println!("done");
    }
}

/// What the server has used so far.
pub struct Usage {
    pub cpu: Duration,
    pub rss: usize,
    pub peak: usize,
    pub encodes: usize,
}

/// A server in a process of its own.
pub struct Remote {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    pub address: SocketAddr,
    /// What it used when it was filled and had no clients.
    pub empty: Usage,
    answers: usize,
    /// Lines that it will write and that nobody has read.
    unread: usize,
}

impl Remote {
    pub fn start(size: usize) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut child = command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let empty = Usage { cpu: Duration::ZERO, rss: 0, peak: 0, encodes: 0 };
        let mut remote =
            Self { child, stdin, stdout, address: line.trim().parse().unwrap(), empty, answers: 0, unread: 0 };
        remote.send("fill", size);
        thread::sleep(Duration::from_millis(200));
        remote.empty = remote.usage();
        remote
    }

    /// Tells it something and waits for the answer.
    fn send(&mut self, verb: &str, number: usize) -> String {
        self.say(verb, number);
        let mut line = String::new();
        for _ in 0..std::mem::take(&mut self.unread) {
            line.clear();
            self.stdout.read_line(&mut line).unwrap();
        }
        line.trim().to_owned()
    }

    fn say(&mut self, verb: &str, number: usize) {
        writeln!(self.stdin, "{verb} {number}").unwrap();
        self.unread += 1;
    }

    /// Publishes one change, without waiting for it.
    pub fn change(&mut self, edition: usize) {
        self.say("change", edition);
    }

    /// Waits until so many more responses were answered.
    pub fn settle(&mut self, answers: usize) {
        self.answers += answers;
        self.send("answers", self.answers);
    }

    pub fn usage(&mut self) -> Usage {
        let encodes = self.send("encodes", 0).parse().unwrap();
        let proc = format!("/proc/{}", self.child.id());
        let mut cpu = Duration::ZERO;
        for task in fs::read_dir(format!("{proc}/task")).unwrap() {
            let text = fs::read_to_string(task.unwrap().path().join("schedstat")).unwrap_or_default();
            cpu += Duration::from_nanos(text.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0));
        }
        let status = fs::read_to_string(format!("{proc}/status")).unwrap();
        let kilobytes = |key: &str| {
            let line = status.lines().find(|line| line.starts_with(key)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
        };
        Usage { cpu, rss: kilobytes("VmRSS"), peak: kilobytes("VmHWM"), encodes }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
