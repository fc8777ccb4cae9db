//! What an Envoy is started with: what can be chosen about it, and its bootstrap.
//!
//! A bootstrap comes as JSON or YAML text and gets an admin interface; one that has one keeps it, whatever its form,
//! and where it listens in the end Envoy tells by itself.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::admin::Admin;
use super::{Envoy, Error, START};
use crate::net::Net;
use crate::process::Command;
use crate::state::StateDir;

/// The usual Envoy, and how it may differ.
#[derive(Clone, Debug)]
pub struct Config {
    part: String,
    name: String,
    concurrency: u32,
    log_level: String,
    drain_time: Duration,
    args: Vec<String>,
}

impl Default for Config {
    fn default() -> Config {
        Config::new()
    }
}

impl Config {
    /// One worker, no hot restart, two seconds to drain.
    pub fn new() -> Config {
        Config {
            part: "envoy".to_owned(),
            name: "envoy".to_owned(),
            concurrency: 1,
            log_level: "info".to_owned(),
            drain_time: Duration::from_secs(2),
            args: Vec::new(),
        }
    }

    /// The part that it is a program of: `envoy-previous` is the minor version before.
    pub fn part(mut self, part: impl Into<String>) -> Config {
        self.part = part.into();
        self
    }

    /// The name of its log, and its node id unless the bootstrap has one.
    pub fn name(mut self, name: impl Into<String>) -> Config {
        self.name = name.into();
        self
    }

    /// How many worker threads.
    pub fn concurrency(mut self, workers: u32) -> Config {
        self.concurrency = workers;
        self
    }

    /// How much it logs: `debug`, `info`, `warning`.
    pub fn log_level(mut self, level: impl Into<String>) -> Config {
        self.log_level = level.into();
        self
    }

    /// Over how long a graceful drain is spread; whole seconds.
    pub fn drain_time(mut self, time: Duration) -> Config {
        self.drain_time = time;
        self
    }

    /// One more argument.
    pub fn arg(mut self, arg: impl Into<String>) -> Config {
        self.args.push(arg.into());
        self
    }

    /// Starts it and waits until it is ready.
    pub async fn start(&self, bootstrap: impl Into<Bootstrap>) -> Result<Envoy, Error> {
        let envoy = self.launch(bootstrap).await?;
        envoy.ready().await?;
        Ok(envoy)
    }

    /// Starts it and waits for its admin interface only: for Envoys whose configuration is yet to come.
    pub async fn launch(&self, bootstrap: impl Into<Bootstrap>) -> Result<Envoy, Error> {
        let state = StateDir::new(&self.name)?;
        let file = self.write(&state, bootstrap.into())?;
        let place = state.path().join("admin-address");
        let process = self
            .command(&file)?
            .args(["--disable-hot-restart", "--concurrency", &self.concurrency.to_string()])
            .args(["--drain-time-s", &self.drain_time.as_secs().to_string()])
            .arg("--admin-address-path")
            .arg(&place)
            .args(&self.args)
            .start_in(&state)?;
        let admin = process.expect_ok("its admin interface", START, async || Admin::read(&place)).await?;
        Ok(Envoy { process, admin, state })
    }

    /// Asks Envoy whether it would take this bootstrap; the error carries its answer.
    pub async fn validate(&self, bootstrap: impl Into<Bootstrap>) -> Result<(), Error> {
        let state = StateDir::new(&self.name)?;
        let file = self.write(&state, bootstrap.into())?;
        let command = self.command(&file)?.args(["--mode", "validate"]).args(&self.args);
        let process = command.start_in(&state)?;
        let status = process.exited();
        if crate::within("the verdict of envoy --mode validate", START, status).await??.success() {
            return Ok(());
        }
        Err(Error::Refused(process.log().tail()))
    }

    fn write(&self, state: &StateDir, bootstrap: Bootstrap) -> Result<std::path::PathBuf, Error> {
        let bootstrap = bootstrap.complete(&self.name)?;
        Ok(state.write("bootstrap.json", format!("{bootstrap:#}\n"))?)
    }

    fn command(&self, bootstrap: &Path) -> Result<Command, Error> {
        // A container has the host name of its pod, and those of our manifests have its namespace in this variable.
        let command = Command::new(parts::program(&self.part)?).name(&self.name);
        let command = command.env("HOSTNAME", &self.name).env("CONTOUR_NAMESPACE", "projectsesame");
        Ok(command.arg("--config-path").arg(bootstrap).args(["--log-level", &self.log_level]))
    }
}

/// A bootstrap.
#[derive(Clone, Debug)]
pub enum Bootstrap {
    /// As JSON.
    Value(Value),
    /// As YAML or JSON text.
    Text(String),
}

impl From<Value> for Bootstrap {
    fn from(value: Value) -> Bootstrap {
        Bootstrap::Value(value)
    }
}

impl From<&Value> for Bootstrap {
    fn from(value: &Value) -> Bootstrap {
        Bootstrap::Value(value.clone())
    }
}

impl From<String> for Bootstrap {
    fn from(text: String) -> Bootstrap {
        Bootstrap::Text(text)
    }
}

impl From<&str> for Bootstrap {
    fn from(text: &str) -> Bootstrap {
        Bootstrap::Text(text.to_owned())
    }
}

impl Bootstrap {
    /// With an admin interface and a node, which Envoy wants once anything comes by xDS.
    pub(super) fn complete(self, name: &str) -> Result<Value, Error> {
        let mut value = match self {
            Bootstrap::Value(value) => value,
            Bootstrap::Text(text) => {
                serde_saphyr::from_str(&text).map_err(|error| Error::Bootstrap(error.to_string()))?
            }
        };
        let fields = value.as_object_mut().ok_or_else(|| Error::Bootstrap("not an object".to_owned()))?;
        if !fields.contains_key("admin") {
            let address = Net::here()?.address();
            let socket = json!({ "address": address, "port_value": 9901 });
            fields.insert("admin".to_owned(), json!({ "address": { "socket_address": socket } }));
        }
        fields.entry("node").or_insert_with(|| json!({ "id": name, "cluster": "testbed" }));
        Ok(value)
    }
}
