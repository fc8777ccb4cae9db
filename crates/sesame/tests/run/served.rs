//! A folder that `sesame run` serves with an Envoy, and files to put into it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use testbed::{Backend, Client, Command, Net, Process, StateDir};

pub const LIMIT: Duration = Duration::from_secs(20);

/// A folder that is served.
pub struct Served {
    pub folder: PathBuf,
    pub http: SocketAddr,
    pub https: SocketAddr,
    pub process: Process,
    _state: StateDir,
}

impl Served {
    /// Serves a folder with these files, each a name and a text.
    pub async fn start(files: &[(&str, String)]) -> Self {
        Self::start_with(files, None).await
    }

    /// The same with the text of a configuration file, which stands beside the folder.
    pub async fn start_with(files: &[(&str, String)], config: Option<&str>) -> Self {
        let state = StateDir::new("run").unwrap();
        let folder = state.path().join("objects");
        fs::create_dir(&folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
        let address = Net::here().unwrap().address();
        let config = config.map(|text| state.write("sesame.yaml", text).unwrap());
        let command = command(&folder, address);
        let command = config.into_iter().fold(command, |command, file| command.flag("config-path", file));
        let process = command.start_in(&state).unwrap();
        process.expect_http((Ipv4Addr::LOCALHOST, stats(address)).into(), "/ready", LIMIT).await.unwrap();
        Self { folder, http: (address, 8080).into(), https: (address, 8443).into(), process, _state: state }
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.join(name), text).unwrap();
    }

    pub async fn status(&self, host: &str, path: &str) -> u16 {
        Client::new(self.http).host(host).get(path).await.unwrap().status.as_u16()
    }

    pub async fn answers(&self, host: &str, path: &str, expected: u16) {
        let what = format!("{host}{path} to answer {expected}");
        let probe = async || match Client::new(self.http).host(host).get(path).await {
            Ok(answer) if answer.status.as_u16() == expected => Ok(()),
            Ok(answer) => Err(format!("it answers {}", answer.status)),
            Err(failure) => Err(failure.to_string()),
        };
        self.process.expect_ok(&what, LIMIT, async || probe().await).await.unwrap();
    }
}

/// The readiness port is on loopback, which tests of one process share; addresses are not.
pub fn stats(address: Ipv4Addr) -> u16 {
    let [.., high, low] = address.octets();
    20_000 + u16::from_be_bytes([high, low]) % 20_000
}

pub fn sesame() -> Command {
    Command::new(env!("CARGO_BIN_EXE_sesame")).name("sesame")
}

pub fn command(folder: &Path, address: Ipv4Addr) -> Command {
    let envoy = parts::program("envoy").unwrap();
    sesame()
        .arg("run")
        .flag("folder", folder)
        .flag("address", address.to_string())
        .flag("stats", stats(address).to_string())
        .flag("envoy", envoy)
}

pub fn service(name: &str, backend: &Backend) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\n  annotations: {{ projectsesame.io/endpoints: \
         \"{}\" }}\nspec:\n  ports: [{{ port: 80 }}]\n",
        backend.http()
    )
}

pub fn ingress(name: &str, host: &str, service: &str) -> String {
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: {name}\nspec:\n  tls:\n    - hosts: [{host}]\n  \
         rules:\n    - host: {host}\n      http:\n        paths:\n          - path: /\n            pathType: Prefix\n            \
         backend: {{ service: {{ name: {service}, port: {{ number: 80 }} }} }}\n"
    )
}
