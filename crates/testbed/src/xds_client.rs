//! An xDS client that behaves as Envoy does, or as a test tells it to: for tests and benchmarks of the xDS server.
//!
//! In: how to reach a server ([`Client`]: address, TLS, identity) and what to ask for. Out: what the server sent, kept or
//! only counted, with bytes and times; and full control of what is answered. It shares no code with the server, not even
//! the decoder, so that a mistake in one is not hidden by the same mistake in the other. It is light: a connection and
//! two tasks each, so thousands fit in one process.
//!
//! ```no_run
//! # async fn example(addr: std::net::SocketAddr) -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use testbed::{Client, XdsClient, xds_client::{Kind, Reply}};
//!
//! let client = XdsClient::to(Client::new(addr)).as_envoy().connect().await?;
//! client.until("a listener", |state| state.count(Kind::Listener) == 1).await?;
//! client.reply_with(|response| match response.kind {
//!     Kind::Route => Reply::Nack("no such thing".into()),
//!     _ => Reply::Ack,
//! });
//! # Ok(())
//! # }
//! ```

mod builder;
mod follow;
mod kind;
mod request;
mod run;
mod state;
mod stream;
mod wire;

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use crate::client::Client;
use crate::deadline::{Late, within};
use run::Command;

pub use builder::Builder;
pub use kind::Kind;
pub use request::{FirstRequests, Known};
pub use state::{Counts, End, Held, Response, State};
pub use wire::Resource;

/// How long [`XdsClient::until`] waits.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What a response is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is taken.
    Ack,
    /// It is refused, with this text; what was held before stays.
    Nack(String),
    /// Nothing yet: see [`XdsClient::answer`].
    Hold,
}

type Decide = dyn Fn(&Response) -> Reply + Send + Sync;

/// A connected client; it ends when dropped.
#[derive(Debug)]
pub struct XdsClient {
    shared: Arc<Shared>,
    commands: mpsc::UnboundedSender<Command>,
    task: AbortHandle,
    builder: Builder,
}

struct Shared {
    state: Mutex<State>,
    /// Rises with every change of the state.
    changes: watch::Sender<u64>,
    decide: Mutex<Arc<Decide>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.state.lock().fmt(f)
    }
}

impl XdsClient {
    /// A client that reaches its server in this way: address, TLS, certificate to present.
    pub fn to(server: Client) -> Builder {
        Builder::new(server)
    }

    /// Asks for resources by name. What is there already is not asked for again.
    pub fn subscribe(&self, kind: Kind, names: impl IntoIterator<Item = impl Into<String>>) {
        self.command(Command::Subscribe(kind, names.into_iter().map(Into::into).collect()));
    }

    /// Asks for all resources of a kind.
    pub fn subscribe_all(&self, kind: Kind) {
        self.command(Command::SubscribeAll(kind));
    }

    /// Asks for these no longer.
    pub fn unsubscribe(&self, kind: Kind, names: impl IntoIterator<Item = impl Into<String>>) {
        self.command(Command::Unsubscribe(kind, names.into_iter().map(Into::into).collect()));
    }

    /// From now on, what each response is answered with.
    pub fn reply_with(&self, decide: impl Fn(&Response) -> Reply + Send + Sync + 'static) {
        *self.shared.decide.lock() = Arc::new(decide);
    }

    /// Answers the oldest response of a kind that is on hold.
    pub fn answer(&self, kind: Kind, reply: Reply) {
        self.command(Command::Answer(kind, reply));
    }

    /// Sends one message of the caller's making on the stream of this kind, well-formed or not. It is framed here.
    pub fn send_raw(&self, kind: Kind, message: impl Into<Bytes>) {
        self.command(Command::Raw(kind, message.into()));
    }

    /// Takes no more from the connection, as a stuck client does, until [`XdsClient::resume`].
    pub fn pause(&self) {
        self.command(Command::Pause(true));
    }

    /// Goes on after [`XdsClient::pause`].
    pub fn resume(&self) {
        self.command(Command::Pause(false));
    }

    fn command(&self, command: Command) {
        // A client whose stream has ended hears nothing; what it has stays to be looked at.
        let _ = self.commands.send(command);
    }

    /// Looks at what the client has.
    pub fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.shared.state.lock())
    }

    /// Waits until what the client has is as wanted, at most 10 s; the error says what came instead.
    pub async fn until(&self, what: impl Display, wanted: impl Fn(&State) -> bool) -> Result<(), Late> {
        let mut changes = self.shared.changes.subscribe();
        let reached = async { while !wanted(&self.shared.state.lock()) && changes.changed().await.is_ok() {} };
        let mut waited = within(&what, TIMEOUT, reached).await;
        if let Err(late) = &mut waited {
            late.last = Some(self.look(|state| format!("{state:?}")));
        }
        waited
    }

    /// Waits until the server ends the stream, and tells how.
    pub async fn ended(&self) -> Result<End, Late> {
        self.until("the stream to end", |state| state.end.is_some()).await?;
        Ok(self.look(|state| state.end.clone()).unwrap_or_default())
    }

    /// Cuts the connection. What the client has stays.
    pub fn cut(&self) {
        self.task.abort();
    }

    /// Cuts the connection and connects again, asking for the same and telling what it has, as Envoy does; to another
    /// replica if one is given.
    pub async fn reconnect(self, to: Option<Client>) -> Result<XdsClient, crate::client::Failure> {
        self.cut();
        let state = std::mem::take(&mut *self.shared.state.lock());
        let builder = self.builder.clone().resume(state, self.shared.decide.lock().clone(), to);
        builder.connect().await
    }

    /// What it has by name and version, in a form that costs nothing to give to thousands of others.
    pub fn known(&self) -> Known {
        self.look(Known::of)
    }
}

impl Drop for XdsClient {
    fn drop(&mut self) {
        self.task.abort();
    }
}
