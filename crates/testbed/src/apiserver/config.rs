//! What can be chosen about an API server before it starts.

use std::net::SocketAddr;

use super::{ApiServer, Error, User};
use crate::net::Net;
use crate::state::StateDir;

/// The usual API server, and how it may differ.
#[derive(Debug)]
pub struct Config {
    pub(super) address: Option<SocketAddr>,
    pub(super) state: Option<StateDir>,
    pub(super) names: Vec<String>,
    pub(super) users: Vec<User>,
    pub(super) service_accounts: bool,
    pub(super) audit: bool,
    pub(super) flags: Vec<(String, String)>,
}

impl Default for Config {
    fn default() -> Config {
        Config::new()
    }
}

impl Config {
    /// The usual one: an address of its own, RBAC, no service accounts for pods, since nobody would make them.
    pub fn new() -> Config {
        Config {
            address: None,
            state: None,
            names: Vec::new(),
            users: vec![User::new("admin", ["system:masters"])],
            service_accounts: false,
            audit: false,
            flags: Vec::new(),
        }
    }

    /// Where to listen, instead of an address from [`Net`]. Etcd uses ports 2379 and 2380 of the same address.
    pub fn address(mut self, address: SocketAddr) -> Config {
        self.address = Some(address);
        self
    }

    /// The folder for its files, instead of one that goes with it.
    pub fn state(mut self, state: StateDir) -> Config {
        self.state = Some(state);
        self
    }

    /// One more name or address that its certificate is good for.
    pub fn name(mut self, name: impl Into<String>) -> Config {
        self.names.push(name.into());
        self
    }

    /// One more user that can log in; see [`ApiServer::kubeconfig_of`]. There is an `admin` already.
    pub fn user(mut self, name: &str, groups: impl IntoIterator<Item = impl Into<String>>) -> Config {
        self.users.push(User::new(name, groups));
        self
    }

    /// Gives pods their service account's token, and wants the account to exist: for clusters where controllers make one
    /// in every namespace.
    pub fn service_accounts(mut self) -> Config {
        self.service_accounts = true;
        self
    }

    /// Records every request; see [`ApiServer::audit`].
    pub fn audit(mut self) -> Config {
        self.audit = true;
        self
    }

    /// Adds the flag `--NAME=VALUE` of kube-apiserver, or replaces the usual value.
    pub fn flag(mut self, name: &str, value: impl Into<String>) -> Config {
        self.flags.push((name.to_owned(), value.into()));
        self
    }

    /// Starts it, and waits until it is ready.
    pub async fn start(mut self) -> Result<ApiServer, Error> {
        let address = match self.address {
            Some(address) => address,
            None => Net::here()?.socket(6443),
        };
        let state = match self.state.take() {
            Some(state) => state,
            None => StateDir::new("apiserver")?,
        };
        ApiServer::start_with(self, address, state).await
    }
}
