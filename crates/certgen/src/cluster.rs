//! The Secrets, written into a cluster.
//!
//! In: Secrets that belong together. Out: what was done with each. A set is written whole or not at all: certificates of
//! two different CAs side by side would lock every Envoy out. Needs only the rights `create` and `update` on Secrets.

use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use thiserror::Error;

use crate::secret::cache_key;

/// Why the Secrets could not be written.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// Some of the set are there and some are not; writing the rest would mix two CAs.
    #[error("of the Secrets that belong together, {} exists already in namespace {namespace}, but {} does not", .there.join(", "), .missing.join(", "))]
    Mixed {
        /// The namespace.
        namespace: String,
        /// Names of those that exist.
        there: Vec<String>,
        /// Names of those that do not.
        missing: Vec<String>,
    },
    /// The API server refused.
    #[error("Secret {namespace}/{name} cannot be written")]
    Write {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
        /// What the API server said.
        #[source]
        source: Box<kube::Error>,
    },
}

/// What was done with the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All were written.
    Written,
    /// All existed already and were left as they are.
    Kept,
}

/// Writes a set of Secrets. Without `overwrite`, a set that exists is left alone.
pub async fn write(client: Client, secrets: &[Secret], overwrite: bool) -> Result<Outcome, ClusterError> {
    if !overwrite {
        let (there, missing) = existing(&client, secrets).await?;
        if missing.is_empty() {
            return Ok(Outcome::Kept);
        }
        if !there.is_empty() {
            let namespace = secrets.iter().find_map(ResourceExt::namespace).unwrap_or_default();
            return Err(ClusterError::Mixed { namespace, there, missing });
        }
    }
    for secret in secrets {
        put(&client, secret, overwrite).await.map_err(|error| refused(secret, error))?;
    }
    Ok(Outcome::Written)
}

/// Creates the Secret with the key that seals the disk cache; says whether it was missing. One that exists is left alone whatever
/// becomes of the certificates: it is needed to read what was written before.
pub async fn create_cache_key(client: Client, namespace: &str) -> Result<bool, ClusterError> {
    let secret = cache_key(namespace);
    match api(&client, &secret).create(&PostParams::default(), &secret).await {
        Ok(_) => Ok(true),
        Err(error) if exists_already(&error) => Ok(false),
        Err(error) => Err(refused(&secret, error)),
    }
}

/// Which of them exist. Asked by creating them as a rehearsal, since the right to read Secrets is not needed otherwise.
async fn existing(client: &Client, secrets: &[Secret]) -> Result<(Vec<String>, Vec<String>), ClusterError> {
    let rehearsal = PostParams { dry_run: true, ..Default::default() };
    let (mut there, mut missing) = (Vec::new(), Vec::new());
    for secret in secrets {
        match api(client, secret).create(&rehearsal, secret).await {
            Ok(_) => missing.push(secret.name_any()),
            Err(error) if exists_already(&error) => there.push(secret.name_any()),
            Err(error) => return Err(refused(secret, error)),
        }
    }
    Ok((there, missing))
}

async fn put(client: &Client, secret: &Secret, overwrite: bool) -> Result<(), kube::Error> {
    let api = api(client, secret);
    match api.create(&PostParams::default(), secret).await {
        Err(error) if overwrite && exists_already(&error) => {
            api.replace(&secret.name_any(), &PostParams::default(), secret).await.map(drop)
        }
        other => other.map(drop),
    }
}

fn api(client: &Client, secret: &Secret) -> Api<Secret> {
    Api::namespaced(client.clone(), &secret.namespace().unwrap_or_default())
}

fn exists_already(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.reason == "AlreadyExists")
}

fn refused(secret: &Secret, error: kube::Error) -> ClusterError {
    ClusterError::Write {
        namespace: secret.namespace().unwrap_or_default(),
        name: secret.name_any(),
        source: Box::new(error),
    }
}
