//! A real ACME server, Pebble, and the DNS server that it asks, whose answers are the test's.
//!
//! In: addresses of hosts. Out: an [`AcmeServer`] that validates challenges for real, at port 80 of what the DNS server says, and issues
//! certificates of a CA of its own. Every order is validated anew: nothing is taken from an earlier one.

use crate::certs::Ca;
use crate::client::{Client, Failure};
use crate::net::Net;
use crate::process::{Command, Process};
use crate::report::debug_as_report;
use crate::start::StartError;
use crate::state::StateDir;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde_json::json;

const START: Duration = Duration::from_secs(30);
const ACME: u16 = 14000;
const DNS: u16 = 8053;
const MANAGEMENT: u16 = 8055;

/// A running ACME server with its DNS server.
#[derive(Debug)]
pub struct AcmeServer {
    ca: Ca,
    address: SocketAddr,
    dns: SocketAddr,
    pebble: Process,
    _resolver: Process,
    _state: StateDir,
}

impl AcmeServer {
    /// Starts both, and waits until they listen.
    pub async fn start() -> Result<AcmeServer, StartError> {
        let net = Net::here()?;
        let state = StateDir::new("acme-server")?;
        let (address, dns) = (net.socket(ACME), net.socket(DNS));
        let management = SocketAddr::new(dns.ip(), MANAGEMENT);
        let resolver = Command::new(parts::program("pebble-challtestsrv")?)
            .args(["-dnsserver", &dns.to_string(), "-management", &management.to_string()])
            .args(["-defaultIPv4", "", "-defaultIPv6", "", "-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""])
            .start_in(&state)?;
        resolver.expect_port(management, START).await?;

        let ca = Ca::new("ACME server");
        let leaf = ca.leaf("acme.example.com").ip(address.ip()).make();
        let config = json!({ "pebble": {
            "listenAddress": address.to_string(),
            "certificate": state.write("tls.crt", leaf.chain_pem())?,
            "privateKey": state.write("tls.key", leaf.key_pem())?,
            "httpPort": 80,
            "tlsPort": 443,
            "keyAlgorithm": "ecdsa",
        } });
        let config = state.write("pebble.json", config.to_string())?;
        let pebble = Command::new(parts::program("pebble")?)
            .arg("-config")
            .arg(config)
            .args(["-dnsserver", &dns.to_string()])
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_AUTHZREUSE", "0")
            .env("PEBBLE_WFE_NONCEREJECT", "0")
            .start_in(&state)?;
        pebble.expect_port(address, START).await?;
        Ok(AcmeServer { ca, address, dns, pebble, _resolver: resolver, _state: state })
    }

    /// The URL of its directory.
    pub fn directory(&self) -> String {
        format!("https://{}/dir", self.address)
    }

    /// The CA of its own endpoint, which is not the one that issues certificates.
    pub fn ca(&self) -> &Ca {
        &self.ca
    }

    /// The DNS server that it asks.
    pub fn dns(&self) -> SocketAddr {
        self.dns
    }

    /// Answers questions for a host with this address. Hosts that nothing was said about have none.
    pub async fn resolve(&self, host: &str, address: IpAddr) -> Result<(), RecordError> {
        let record = json!({ "host": host, "addresses": [address] });
        let management = Client::new(SocketAddr::new(self.dns.ip(), MANAGEMENT));
        let answer = management.post("/add-a", record.to_string()).await.map_err(RecordError::Unanswered)?;
        if answer.status == 200 { Ok(()) } else { Err(RecordError::Refused(answer.text())) }
    }

    /// How many challenges it has validated.
    pub fn validated(&self) -> usize {
        self.pebble.log().text().matches("set VALID by completed challenge").count()
    }

    /// Its process: log, signals.
    pub fn process(&self) -> &Process {
        &self.pebble
    }
}

/// The DNS server has no such record.
#[derive(thiserror::Error)]
pub enum RecordError {
    /// It did not answer.
    #[error("a record for the DNS server of the ACME server")]
    Unanswered(#[source] Failure),
    /// It took no record.
    #[error("the DNS server of the ACME server refused a record: {0}")]
    Refused(String),
}
debug_as_report!(RecordError);
