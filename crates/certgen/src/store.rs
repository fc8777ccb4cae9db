//! The Secrets of a [rotation](crate::rotation) in a cluster.
//!
//! In: a namespace. Out: the Secrets as they are, and writes that fail if somebody else has changed a Secret meanwhile. Needs
//! the rights to create Secrets in the namespace, and to get and update those three.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};

use crate::issue::Pair;
use crate::rotation::{Ca, CaSecret, Certificate, LeafSecret, Role, Secrets};

/// The Secret of the CA. No host can be served with it: its type is nobody else's.
pub const CA: &str = "sesame-ca";
const CA_TYPE: &str = "projectsesame.io/certificate-authority";
const TLS_TYPE: &str = "kubernetes.io/tls";
/// When a Secret was written, as an annotation.
const WRITTEN: &str = "projectsesame.io/written-at";
/// An annotation that asks for a new CA.
pub const ROTATE: &str = "projectsesame.io/rotate-ca";
/// An annotation that says that the next CA was made because somebody asked for it.
const REQUESTED: &str = "projectsesame.io/next-ca-requested";
/// The label of what Sesame makes, with its value.
const OURS: (&str, &str) = ("app", "sesame");
/// What cert-manager marks its Secrets with.
const CERT_MANAGER: &str = "cert-manager.io/certificate-name";

/// The name of the Secret of a role.
pub fn name(role: Role) -> &'static str {
    match role {
        Role::Server => "sesamecert",
        Role::Envoy => "envoycert",
    }
}

/// The Secrets as they were read.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    ca: Option<Secret>,
    server: Option<Secret>,
    envoy: Option<Secret>,
}

impl Stored {
    /// What they say. What cannot be read counts as missing, and is replaced; what somebody else made does not.
    pub fn secrets(&self) -> Secrets {
        Secrets {
            ca: self.ca.as_ref().map(ca_of),
            server: self.server.as_ref().and_then(leaf_of),
            envoy: self.envoy.as_ref().and_then(leaf_of),
            is_foreign: [&self.server, &self.envoy].into_iter().flatten().any(is_foreign),
        }
    }

    /// The names of Secrets that are there and cannot be read.
    pub fn unreadable(&self) -> Vec<&'static str> {
        let leaves = [(Role::Server, &self.server), (Role::Envoy, &self.envoy)];
        let unreadable = |secret: &Option<Secret>| secret.as_ref().is_some_and(|secret| leaf_of(secret).is_none());
        let leaves = leaves.into_iter().filter(|(_, secret)| unreadable(secret)).map(|(role, _)| name(role));
        let no_ca =
            self.ca.as_ref().is_some_and(|secret| ca_of(secret).current.is_none() && ca_of(secret).next.is_none());
        no_ca.then_some(CA).into_iter().chain(leaves).collect()
    }
}

/// The Secrets of a namespace.
#[derive(Clone)]
pub struct Store {
    api: Api<Secret>,
    namespace: String,
}

impl Store {
    /// Those of a namespace.
    pub fn new(client: Client, namespace: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), namespace: namespace.to_owned() }
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Reads all of them.
    pub async fn read(&self) -> kube::Result<Stored> {
        Ok(Stored {
            ca: self.api.get_opt(CA).await?,
            server: self.api.get_opt(name(Role::Server)).await?,
            envoy: self.api.get_opt(name(Role::Envoy)).await?,
        })
    }

    /// The certificate of the xDS server with its key and the CAs, in PEM, if it is there whole.
    pub async fn server(&self) -> kube::Result<Option<(Pair, String)>> {
        let secret = self.api.get_opt(name(Role::Server)).await?;
        Ok(secret.as_ref().and_then(|secret| {
            let pair = Pair { certificate: entry(secret, "tls.crt")?, key: entry(secret, "tls.key")? };
            Some((pair, entry(secret, "ca.crt")?))
        }))
    }

    /// Writes the Secret of the CA, unless somebody else has written it since it was read.
    pub async fn write_ca(&self, stored: &Stored, ca: &CaSecret) -> kube::Result<()> {
        let mut data = BTreeMap::new();
        for (ca, certificate, key) in [(&ca.current, "ca.crt", "ca.key"), (&ca.next, "next.crt", "next.key")] {
            if let Some(ca) = ca {
                data.insert(certificate.to_owned(), bytes(&ca.pair.certificate));
                data.insert(key.to_owned(), bytes(&ca.pair.key));
            }
        }
        let annotations = [(ROTATE, ca.is_requested), (REQUESTED, ca.is_next_requested)];
        let annotations = annotations.into_iter().filter(|(_, is_set)| *is_set);
        let annotations = annotations.map(|(name, _)| (name.to_owned(), String::new())).collect();
        let secret = self.secret(CA, CA_TYPE, data, annotations);
        self.put(stored.ca.as_ref(), secret).await
    }

    /// Writes the Secret of a role, unless somebody else has written it since it was read.
    pub async fn write_leaf(&self, stored: &Stored, role: Role, leaf: &LeafSecret) -> kube::Result<()> {
        let bundle: String = leaf.bundle.iter().map(|ca| ca.pem.as_str()).collect();
        let data = [("ca.crt", &bundle), ("tls.crt", &leaf.pair.certificate), ("tls.key", &leaf.pair.key)];
        let data = data.map(|(name, text)| (name.to_owned(), bytes(text))).into();
        let written = Timestamp::from_second(leaf.since).unwrap_or_default().to_string();
        let secret = self.secret(name(role), TLS_TYPE, data, [(WRITTEN.to_owned(), written)].into());
        let before = match role {
            Role::Server => &stored.server,
            Role::Envoy => &stored.envoy,
        };
        self.put(before.as_ref(), secret).await
    }

    /// Creates the key of the disk cache if there is none.
    pub async fn create_cache_key(&self) -> kube::Result<bool> {
        let name = crate::secret::CACHE_KEY;
        if self.api.get_opt(name).await?.is_some() {
            return Ok(false);
        }
        match self.api.create(&PostParams::default(), &crate::secret::cache_key(&self.namespace)).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn secret(
        &self,
        name: &str,
        kind: &str,
        data: BTreeMap<String, ByteString>,
        annotations: BTreeMap<String, String>,
    ) -> Secret {
        Secret {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(self.namespace.clone()),
                labels: Some([(OURS.0.to_owned(), OURS.1.to_owned())].into()),
                annotations: Some(annotations),
                ..ObjectMeta::default()
            },
            type_: Some(kind.to_owned()),
            data: Some(data),
            ..Secret::default()
        }
    }

    async fn put(&self, before: Option<&Secret>, mut secret: Secret) -> kube::Result<()> {
        let Some(before) = before else { return self.api.create(&PostParams::default(), &secret).await.map(drop) };
        // What others have added to the metadata stays; the version makes a write fail that comes too late.
        let mut metadata = before.metadata.clone();
        let own = secret.metadata.annotations.take().unwrap_or_default();
        let others = metadata.annotations.take().unwrap_or_default();
        let others = others.into_iter().filter(|(name, _)| ![WRITTEN, ROTATE, REQUESTED].contains(&name.as_str()));
        metadata.annotations = Some(others.chain(own).collect());
        metadata.managed_fields = None;
        secret.metadata = metadata;
        secret.type_.clone_from(&before.type_);
        let name = secret.metadata.name.clone().unwrap_or_default();
        self.api.replace(&name, &PostParams::default(), &secret).await.map(drop)
    }
}

fn ca_of(secret: &Secret) -> CaSecret {
    let ca = |certificate: &str, key: &str| {
        Ca::read(Pair { certificate: entry(secret, certificate)?, key: entry(secret, key)? })
    };
    CaSecret {
        current: ca("ca.crt", "ca.key"),
        next: ca("next.crt", "next.key"),
        is_requested: annotation(secret, ROTATE).is_some(),
        is_next_requested: annotation(secret, REQUESTED).is_some(),
    }
}

fn leaf_of(secret: &Secret) -> Option<LeafSecret> {
    let pair = Pair { certificate: entry(secret, "tls.crt")?, key: entry(secret, "tls.key")? };
    let leaf = Certificate::first(&pair.certificate)?;
    let bundle = Certificate::all(&entry(secret, "ca.crt")?)?;
    let since = annotation(secret, WRITTEN).and_then(|text| text.parse::<Timestamp>().ok());
    Some(LeafSecret { bundle, leaf, pair, since: since.map_or(0, Timestamp::as_second) })
}

/// Whether somebody else makes it.
fn is_foreign(secret: &Secret) -> bool {
    let label = secret.metadata.labels.as_ref().and_then(|labels| labels.get(OURS.0));
    label.is_none_or(|value| value != OURS.1) || annotation(secret, CERT_MANAGER).is_some()
}

fn annotation<'a>(secret: &'a Secret, name: &str) -> Option<&'a str> {
    secret.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

fn entry(secret: &Secret, name: &str) -> Option<String> {
    String::from_utf8(secret.data.as_ref()?.get(name)?.0.clone()).ok()
}

fn bytes(text: &str) -> ByteString {
    ByteString(text.as_bytes().to_owned())
}
