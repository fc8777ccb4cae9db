//! The Envoy of an implementation, asked as its users ask: until a host is served as it should be.
//!
//! In: a host, a path, the backend that is to answer. Out: when the right answer came, and every answer on the way that
//! nobody should see: while a host appears, only 404 (or no listener yet) and then 200 are right.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::future::try_join_all;
use parking_lot::Mutex;
use testbed::client::{Answer, Connection, Failure};
use testbed::{Client, Envoy};

use crate::implementation::Instance;
use crate::world::{Backend, FIRST_AUDIENCE, Protection, World, bearer};

/// How long a probe rests before it asks again: it must not take the CPU from what it waits for.
const PROBE: Duration = Duration::from_micros(500);
/// The same while everything starts, which takes seconds.
const PROBE_COLD: Duration = Duration::from_millis(5);
/// Has the backend close the connection after its answer. Envoy would keep one for each host, and nobody has 50,000 files.
const ONCE: (&str, &str) = ("x-echo-header", "connection: close");
/// Requests under way at once when all hosts are asked.
const AT_ONCE: usize = 16;

/// An Envoy and how it is asked.
pub struct Proxy {
    /// Itself.
    pub envoy: Envoy,
    instance: Instance,
    world: World,
    unexpected: Mutex<BTreeMap<String, u64>>,
}

/// What is to be answered.
#[derive(Clone, Debug)]
pub struct ExpectedAnswer {
    /// Which host is asked.
    pub number: usize,
    /// For what.
    pub path: String,
    /// Who is to answer.
    pub backend: Backend,
    /// The audience of the token, where the host asks for one.
    pub audience: &'static str,
}

impl ExpectedAnswer {
    /// An answer to whoever has the tokens of the start.
    pub fn new(number: usize, path: impl Into<String>, backend: Backend) -> ExpectedAnswer {
        ExpectedAnswer { number, path: path.into(), backend, audience: FIRST_AUDIENCE }
    }
}

/// How all hosts were found to be served.
#[derive(Clone, Copy, Debug)]
pub struct Sweep {
    /// When the first right answer came.
    pub first: Instant,
    /// When the last one did.
    pub last: Instant,
}

enum Answered {
    Right,
    /// Not yet, and that is fine.
    NotYet,
    /// What nobody should see.
    Wrong(String),
}

impl Proxy {
    /// Asks this Envoy for the hosts of this world.
    pub fn new(envoy: Envoy, instance: &Instance, world: World) -> Proxy {
        Proxy { envoy, instance: instance.clone(), world, unexpected: Mutex::default() }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.envoy.process().id()
    }

    /// Answers that nobody should have seen, by what they were; counted anew from here.
    pub fn unexpected(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut *self.unexpected.lock())
    }

    /// A client of this Envoy for a host.
    pub fn client(&self, number: usize) -> Client {
        let host = self.world.host(number);
        match self.world.is_secured(number) {
            true => Client::new(self.instance.https).host(host).https(),
            false => Client::new(self.instance.http).host(host),
        }
    }

    /// Asks until the answer is right, and tells when it was.
    pub async fn until_served(&self, expected: &ExpectedAnswer) -> Instant {
        self.ask_until(&mut None, expected, PROBE).await
    }

    /// Asks every host, from the last of them on, until each has answered right.
    pub async fn sweep(&self, path: &str, backend: Backend) -> Result<Sweep> {
        let expected = |number| ExpectedAnswer::new(number, path, backend);
        let last = self.world.size.checked_sub(1).context("there are no hosts")?;
        // The rest is asked once one is there: asking thousands in vain would only slow down what is waited for.
        let first = self.ask_until(&mut None, &expected(last), PROBE_COLD).await;
        let last = self.each((0..last).map(expected).collect()).await?;
        Ok(Sweep { first, last: last.unwrap_or(first) })
    }

    /// Asks for all of these until each is right, and tells when the last one was.
    pub async fn each(&self, expected: Vec<ExpectedAnswer>) -> Result<Option<Instant>> {
        let next = AtomicUsize::new(0);
        let worker = async || {
            let (mut connection, mut last) = (None, None);
            while let Some(expected) = expected.get(next.fetch_add(1, Ordering::Relaxed)) {
                last = last.max(Some(self.ask_until(&mut connection, expected, PROBE_COLD).await));
            }
            anyhow::Ok(last)
        };
        let ends = try_join_all((0..AT_ONCE).map(|_| worker())).await?;
        Ok(ends.into_iter().flatten().max())
    }

    async fn ask_until(
        &self,
        connection: &mut Option<Connection>,
        expected: &ExpectedAnswer,
        rest: Duration,
    ) -> Instant {
        loop {
            let answer = self.ask(connection, expected).await;
            match self.compare(expected, &answer) {
                Answered::Right => return Instant::now(),
                Answered::NotYet => {}
                Answered::Wrong(what) => *self.unexpected.lock().entry(what).or_default() += 1,
            }
            tokio::time::sleep(rest).await;
        }
    }

    /// One request, on the open connection if there is one. A TLS connection is one host's.
    async fn ask(&self, connection: &mut Option<Connection>, expected: &ExpectedAnswer) -> Result<Answer, Failure> {
        let path = self.world.path(expected.number, &expected.path);
        if self.world.is_secured(expected.number) {
            let request = self.client(expected.number).get(&path).header(ONCE.0, ONCE.1);
            return match self.world.protection(expected.number) {
                Some(Protection::Tokens) => request.header("authorization", &bearer(expected.audience)).await,
                Some(Protection::ClientCertificates | Protection::Authorization) | None => request.await,
            };
        }
        let open = match connection.take().filter(Connection::is_open) {
            Some(open) => open,
            None => self.client(expected.number).connect().await?,
        };
        let answer = open.get(&path).host(self.world.host(expected.number)).header(ONCE.0, ONCE.1).await?;
        *connection = Some(open);
        Ok(answer)
    }

    fn compare(&self, expected: &ExpectedAnswer, answer: &Result<Answer, Failure>) -> Answered {
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) if failure.is_refused() || failure.is_unprocessed() => return Answered::NotYet,
            // A name that no chain is for is refused by closing the connection.
            Err(Failure::Tls { .. }) if self.world.is_secured(expected.number) => return Answered::NotYet,
            Err(failure) => return Answered::Wrong(failure.to_string()),
        };
        match answer.status.as_u16() {
            404 => Answered::NotYet,
            // The token is for another audience until the provider is edited.
            403 if expected.audience != FIRST_AUDIENCE => Answered::NotYet,
            200 => match answer.try_echo() {
                Some(seen) if seen.host.as_deref() != Some(&self.world.host(expected.number)) => {
                    Answered::Wrong(format!("200 for {:?}", seen.host))
                }
                // An earlier backend, until the new one is known.
                Some(seen) if seen.name != expected.backend.name => Answered::NotYet,
                Some(_) => Answered::Right,
                None => Answered::Wrong("200 from nobody's backend".to_owned()),
            },
            status => Answered::Wrong(status.to_string()),
        }
    }
}
