//! Health, metrics and debug pages of `sesame run`, as `sesame serve` has them, on one address.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use admin::{LogFilter, Readiness, Recorder, Replica, Task, Views};
use anyhow::Result;
use model::Code;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use xds::Server;

use crate::control::{BatchReport, Control};
use crate::problem::Coded;
use crate::serve::{BUILD, report};

/// The pages, served for as long as this is there.
pub struct Pages {
    recorder: Recorder,
    first_build: Option<Task>,
    server: JoinHandle<std::io::Result<()>>,
}

impl Pages {
    /// Serves them.
    pub async fn open(address: SocketAddr, control: &Control, server: &Server, log: LogFilter) -> Result<Self> {
        let listener = TcpListener::bind(address).await;
        let listener =
            listener.coded(Code::AddressInUse, || format!("cannot listen on {address} (--debug-address)"))?;
        let (recorder, board) = admin::board();
        let readiness = Readiness::default();
        let first_build = readiness.task("the first build");
        let mut registry = Registry::default();
        BUILD.register(&mut registry);
        board.register(&mut registry);
        control.register(&mut registry);
        server.register(&mut registry);
        admin::proxies::register(server, &mut registry);
        readiness.register(&mut registry);
        let replica = Replica {
            name: "local".into(),
            build: BUILD,
            started: SystemTime::now(),
            readiness: readiness.clone(),
            // There is no other.
            is_leader: Arc::new(|| true),
            xds_files: None,
        };
        let router = admin::health(&readiness)
            .merge(admin::metrics(Arc::new(registry), false))
            .merge(admin::debug(Views { board, server: server.clone(), log: Some(log), replica }));
        let server = tokio::spawn(admin::serve(listener, router, std::future::pending()));
        Ok(Self { recorder, first_build: Some(first_build), server })
    }

    /// Notes a batch.
    pub fn note(&mut self, news: &BatchReport<'_>) {
        if news.is_complete
            && let Some(first_build) = self.first_build.take()
        {
            first_build.done();
        }
        self.recorder.note(report::note(news));
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.server.abort();
    }
}
