//! What can be chosen about a cluster before it starts, and whether this process may make nodes at all.
//!
//! The latter is what the kernel says of this process: yes, or one line that the runner of all tests counts. Being
//! root in a user namespace is not enough: control groups and most mounts belong to the machine.

use super::{Cluster, Components, Error, Home, named_kubeconfig};
use crate::image::Image;
use std::io::Write;

/// How many machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nodes {
    /// One, which everything but spreading can be tested on.
    #[default]
    One,
    /// Two.
    Two,
}

impl Nodes {
    pub(super) fn count(self) -> u8 {
        match self {
            Nodes::One => 1,
            Nodes::Two => 2,
        }
    }
}

/// The usual cluster, and how it may differ.
#[derive(Debug)]
pub struct Config {
    pub(super) nodes: Nodes,
    pub(super) images: Vec<Image>,
    pub(super) audit: bool,
    pub(super) progress: fn(&str),
}

impl Default for Config {
    fn default() -> Config {
        Config { nodes: Nodes::default(), images: Vec::new(), audit: false, progress: |_| {} }
    }
}

impl Config {
    /// How many nodes; one if not said.
    pub fn nodes(mut self, nodes: Nodes) -> Config {
        self.nodes = nodes;
        self
    }

    /// One more image that pods can use from the start. Loading it here costs next to nothing: it happens while the API
    /// server starts.
    pub fn image(mut self, image: Image) -> Config {
        self.images.push(image);
        self
    }

    /// Records what the API server is asked; see [`ApiServer::audit`](crate::ApiServer::audit).
    pub fn audit(mut self) -> Config {
        self.audit = true;
        self
    }

    /// What is called with each step of the start: for people who wait.
    pub fn progress(mut self, progress: fn(&str)) -> Config {
        self.progress = progress;
        self
    }

    /// Starts it, and waits until its nodes are ready and names resolve. With `SESAME_KUBECONFIG` set it only connects
    /// to the cluster named there, which must have the images.
    pub async fn start(self) -> Result<Cluster, Error> {
        if let Some(kubeconfig) = named_kubeconfig() {
            return Cluster::connect(kubeconfig, Home::Elsewhere).await;
        }
        if !is_root() {
            return Err(Error::NeedsRoot);
        }
        let components = Components::start(self).await?;
        Cluster::connect(components.api().kubeconfig()?, Home::Components(Box::new(components))).await
    }
}

/// For the first line of a test that needs a cluster: `if !cluster::available() { return }`. Without root, and without
/// `SESAME_KUBECONFIG`, it says `skipped: needs root: TEST` on standard error; `cargo xtask test` counts these lines.
pub fn available() -> bool {
    if named_kubeconfig().is_some() || is_root() {
        return true;
    }
    let thread = std::thread::current();
    // Straight to the file: what goes through the print macros is swallowed when a test passes.
    let _ = writeln!(std::io::stderr(), "skipped: needs root: {}", thread.name().unwrap_or("test"));
    false
}

/// Whether this process is the machine's root, with the rights that nodes need.
pub fn is_root() -> bool {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    rustix::process::geteuid().is_root()
        && maps_all(&read("/proc/self/uid_map"))
        && administers(&read("/proc/self/status"))
}

/// All users are themselves: this is no user namespace of somebody's.
fn maps_all(uid_map: &str) -> bool {
    uid_map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// The process has CAP_SYS_ADMIN.
fn administers(status: &str) -> bool {
    const SYS_ADMIN: u32 = 21;
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits >> SYS_ADMIN & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_of_a_user_namespace_is_not_root() {
        assert!(maps_all("         0          0 4294967295\n"));
        assert!(!maps_all("         0       1000          1\n"));
    }

    #[test]
    fn root_without_rights_is_not_root() {
        assert!(administers("Name:\tx\nCapEff:\t000001fffeffffff\n"));
        assert!(!administers("Name:\tx\nCapEff:\t00000000a80425fb\n"));
    }
}
