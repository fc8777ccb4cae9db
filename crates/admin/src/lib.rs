//! What operators look at: health, metrics and debug pages.
//!
//! In: what the control loop notes after each batch ([`Recorder`]), the xDS server's acks, and a registry that every part
//! has added its figures to. Out: [`Router`]s for the listeners that the operator chose. Pages read from views that are
//! swapped in as a whole: whoever looks, however slowly, the control loop never waits for them.
//!
//! ```no_run
//! # use admin::{BuildInfo, LogFilter, Note, Readiness, Replica, Views};
//! # use std::sync::Arc;
//! # async fn example(server: xds::Server, engine: engine::Engine, log: LogFilter, replica: Replica) -> std::io::Result<()> {
//! let (mut recorder, board) = admin::board();
//! let readiness = Readiness::default();
//! let first_build = readiness.task("the first build");
//! let mut registry = prometheus_client::registry::Registry::default();
//! BuildInfo { version: "0.1.0", revision: "" }.register(&mut registry);
//! board.register(&mut registry);
//! server.register(&mut registry);
//!
//! let public = admin::health(&readiness).merge(admin::metrics(Arc::new(registry), false));
//! let listener = tokio::net::TcpListener::bind("0.0.0.0:8000").await?;
//! tokio::spawn(admin::serve(listener, public, std::future::pending()));
//! let debug = admin::debug(Views { board, server, log: Some(log), replica });
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:6060").await?;
//! tokio::spawn(admin::serve(listener, debug, std::future::pending()));
//!
//! recorder.note(Note { tables: engine.counters(), batch: engine.last_batch(), ..Note::default() });
//! first_build.done();
//! # Ok(()) }
//! ```

mod board;
mod debug;
mod health;
mod listen;
mod metrics;
mod shutdown;
pub mod tls;

pub use self::tls::Tls;
pub use board::{Board, Note, Recorder, board};
pub use debug::{LogFilter, Replica, Views, debug};
pub use health::{Readiness, Task, health};
pub use listen::serve_on;
pub use metrics::{BuildInfo, MOST_CERTIFICATES, MOST_VERDICT_SERIES, metrics, proxies, table};
pub use shutdown::shutdown;

pub use axum::Router;

use std::io;
use tokio::net::TcpListener;

/// Serves pages until `shutdown`.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    axum::serve(listener, router).with_graceful_shutdown(shutdown).await
}
