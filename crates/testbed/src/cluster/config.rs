//! What can be chosen about a cluster before it starts.

use super::{Bed, Cluster, Error, Home, named_kubeconfig, root};
use crate::image::Image;

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
    pub(super) tell: fn(&str),
}

impl Default for Config {
    fn default() -> Config {
        Config { nodes: Nodes::default(), images: Vec::new(), tell: |_| {} }
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

    /// Whom to tell how far it is: for people who wait.
    pub fn tell(mut self, tell: fn(&str)) -> Config {
        self.tell = tell;
        self
    }

    /// Starts it, and waits until its nodes are ready and names resolve. With `SESAME_KUBECONFIG` set it only connects
    /// to the cluster named there, which must have the images.
    pub async fn start(self) -> Result<Cluster, Error> {
        if let Some(kubeconfig) = named_kubeconfig() {
            return Cluster::connect(kubeconfig, Home::Elsewhere).await;
        }
        if !root::is_root() {
            return Err(Error::NeedsRoot);
        }
        let bed = Bed::start(self).await?;
        Cluster::connect(bed.api().kubeconfig()?, Home::Bed(Box::new(bed))).await
    }
}
