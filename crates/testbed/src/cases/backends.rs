//! The backends of cases: one echo for each Service that needs one, kept for all cases that follow.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rustls::ServerConfig;

use super::clients::ClientCertificates;
use crate::auth_server::AuthServer;
use crate::backend::{Backend, Error};
use crate::certs::{Ca, Leaf};

/// Backends by name.
pub struct Backends {
    running: BTreeMap<String, Backend>,
    /// Those that are asked for authorization.
    auth_servers: BTreeMap<String, AuthServer>,
    /// Who signed what all of them present on their TLS ports.
    ca: Ca,
    /// What they present there: a certificate for `backend` and for `spiffe://cases/backend`.
    leaf: Leaf,
    /// They ask for one of `clients`.
    tls: Arc<ServerConfig>,
    /// What clients present.
    clients: ClientCertificates,
}

impl Default for Backends {
    fn default() -> Backends {
        Backends::new()
    }
}

impl Backends {
    /// None yet.
    pub fn new() -> Backends {
        let (ca, clients) = (Ca::new("backends"), ClientCertificates::new());
        let leaf = ca.leaf("backend").uri("spiffe://cases/backend").make();
        let tls = leaf.server_config_asking(clients.ca());
        let (running, auth_servers) = Default::default();
        Backends { running, auth_servers, ca, leaf, tls, clients }
    }

    /// The CRL of their CA, with what they present or without; else those of clients.
    pub(super) fn crls(&self, names: &str) -> Result<String, String> {
        match names {
            "backends" => Ok(self.ca.crl([]).pem().to_owned()),
            "backends-revoked" => Ok(self.ca.crl([&self.leaf]).pem().to_owned()),
            other => self.clients.crls(other),
        }
    }

    /// Who signed what they present.
    pub fn ca(&self) -> &Ca {
        &self.ca
    }

    /// What clients of cases present.
    pub fn clients(&self) -> &ClientCertificates {
        &self.clients
    }

    /// The backend of this name, started if it is not there; its address.
    pub async fn named(&mut self, name: &str) -> Result<Ipv4Addr, Error> {
        self.start(name, None).await
    }

    /// The backend at this address, started if it is not there; it calls itself by the address.
    pub async fn at(&mut self, address: Ipv4Addr) -> Result<Ipv4Addr, Error> {
        self.start(&address.to_string(), Some(address)).await
    }

    async fn start(&mut self, name: &str, address: Option<Ipv4Addr>) -> Result<Ipv4Addr, Error> {
        if let Some(backend) = self.running.get(name) {
            return Ok(backend.ip());
        }
        let mut builder = Backend::named(name).tls_config(self.tls.clone());
        if let Some(address) = address {
            builder = builder.address(address);
        }
        let backend = builder.start().await?;
        let ip = backend.ip();
        self.running.insert(name.to_owned(), backend);
        Ok(ip)
    }

    /// The authorization server of this name, started if it is not there; its address.
    pub async fn auth_server(&mut self, name: &str) -> Result<Ipv4Addr, Error> {
        if let Some(server) = self.auth_servers.get(name) {
            return Ok(server.ip());
        }
        let server = AuthServer::start(name, self.tls.clone()).await?;
        let ip = server.ip();
        self.auth_servers.insert(name.to_owned(), server);
        Ok(ip)
    }

    /// The name of the backend at an address.
    pub fn name_of(&self, address: &str) -> Option<&str> {
        let address: IpAddr = address.parse().ok()?;
        let asked = self.auth_servers.iter().find(|(_, server)| IpAddr::from(server.ip()) == address);
        if let Some((name, _)) = asked {
            return Some(name);
        }
        self.running.values().find(|backend| IpAddr::from(backend.ip()) == address).map(Backend::name)
    }

    /// How many requests all of them have taken.
    pub fn requests(&self) -> u64 {
        self.running.values().filter_map(Backend::running).map(echo::Running::requests).sum()
    }
}

impl std::fmt::Debug for Backends {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.running.keys()).finish()
    }
}
