//! Health, metrics and debug pages of `sesame run`, as `sesame serve` has them, on one address.

use std::net::SocketAddr;
use std::path::Path;
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
    /// Serves them; not ready before the first build of what is in the folder.
    pub async fn open(
        address: SocketAddr,
        folder: &Path,
        control: &Control,
        server: &Server,
        log: LogFilter,
    ) -> Result<Self> {
        let listener = TcpListener::bind(address).await;
        let listener =
            listener.coded(Code::AddressInUse, || format!("cannot listen on {address} (--debug-address)"))?;
        let (recorder, board) = admin::board();
        let readiness = Readiness::default();
        let first_build = readiness.task("the first build");
        first_build.waits(Some(format!("{} is being read", folder.display())));
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
        if let (Some(first_build), Some(why)) = (&self.first_build, news.blocked.as_ref().or(news.awaited.as_ref())) {
            first_build.waits(Some(why.clone()));
        }
        self.recorder.note(report::note(news));
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.server.abort();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use pipeline::Pipeline;
    use replicas::Replicas;
    use testbed::{Client, Net};

    #[tokio::test]
    async fn until_the_folder_is_read_readiness_says_so() {
        let server = Server::new(xds::Config::default());
        let replicas = Replicas::new(server.clone(), None);
        let control = Control::new(Pipeline::new(&pipeline::Settings::default()), server.clone(), replicas);
        let log = LogFilter { get: Arc::new(String::new), set: Arc::new(|_| Ok(())) };
        let address = Net::here().unwrap().socket(6060);
        let pages = Pages::open(address, Path::new("shop"), &control, &server, log).await.unwrap();
        let answer = Client::new(address).get("/readyz").await.unwrap();
        let text = answer.text();
        assert_eq!((answer.status.as_u16(), &*text), (503, "waiting for the first build (shop is being read)\n"));
        drop(pages);
    }
}
