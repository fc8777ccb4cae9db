//! Settings that change while the control loop runs.
//!
//! They are a change like any other: what they reach is recomputed, what does not differ is not published. Of several that
//! wait, only the last is worked on.

use std::future;

use model::Code;
use pipeline::Settings;
use tokio::sync::mpsc;
use tracing::{info, warn};

use super::Control;

/// The settings that hold now.
pub(super) async fn next(changes: &mut mpsc::UnboundedReceiver<Settings>) -> Settings {
    let Some(mut settings) = changes.recv().await else {
        // Whoever followed the configuration has ended, and the server with it.
        return future::pending().await;
    };
    while let Ok(later) = changes.try_recv() {
        settings = later;
    }
    settings
}

impl Control {
    /// Logs whether spans can be sent, where that has changed. No object of a tenant is told: what is traced is the operator's.
    pub(super) fn report_tracing(&mut self) {
        let problem = self.pipeline.tracing_problem();
        if problem == self.tracing_problem.as_ref() {
            return;
        }
        let code = Code::TracingUnusable;
        match problem {
            Some(problem) => warn!(%code, "{code}: {}: {} ({})", code.title(), problem.why, code.help()),
            None => info!("tracing: the problem is resolved: spans are sent, or tracing is off"),
        }
        self.tracing_problem = problem.cloned();
    }

    /// Takes other settings.
    pub(super) fn reconfigure(&mut self, settings: &Settings) {
        self.pipeline.set_settings(settings);
        if let Some(fleets) = &mut self.gateway_fleets {
            fleets.set_settings(&mut self.pipeline, settings.fleet());
        }
    }
}
