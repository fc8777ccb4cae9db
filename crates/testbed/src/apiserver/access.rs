//! Who may log in and how: users with tokens, anyone by impersonation, service accounts; and the certificates by which
//! the server is known.
//!
//! In: a user. Out: a kubeconfig file for programs, a client for the test itself. Declared users have a token each,
//! which the server reads at its start, so there are no client certificates. Any other user and groups are had at any
//! time by impersonation: the server checks the rights of the impersonated user, which is all that a test of RBAC
//! needs.

use std::path::PathBuf;

use base64::Engine;
use futures::FutureExt;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use serde_json::{Value, json};

use super::{ApiServer, Error};
use crate::state::StateDir;

pub const TOKEN_FILE: &str = "tokens.csv";

/// A user who logs in with a token.
#[derive(Clone, Debug)]
pub struct User {
    name: String,
    groups: Vec<String>,
}

impl User {
    pub(super) fn new(name: &str, groups: impl IntoIterator<Item = impl Into<String>>) -> User {
        User { name: name.to_owned(), groups: groups.into_iter().map(Into::into).collect() }
    }

    /// Nobody outside the sandbox can reach the server, so a token may be guessed.
    fn token(&self) -> String {
        format!("token-of-{}", self.name.replace(':', "-"))
    }
}

/// The file that tells the server its users: token, name, id, groups.
pub fn token_file(users: &[User]) -> String {
    let line = |user: &User| format!("{},{},{},\"{}\"\n", user.token(), user.name, user.name, user.groups.join(","));
    users.iter().map(line).collect()
}

impl ApiServer {
    /// A client with all rights. Each call makes a new one, because a client belongs to the runtime that it is made in.
    pub fn client(&self) -> Result<kube::Client, Error> {
        self.client_with(self.admin())
    }

    /// A client of any user with any groups.
    pub fn client_as(&self, user: &str, groups: &[&str]) -> Result<kube::Client, Error> {
        self.client_with(self.impersonate(user, groups))
    }

    /// The file of a kubeconfig with all rights.
    pub fn kubeconfig(&self) -> Result<PathBuf, Error> {
        self.write_kubeconfig("admin", &self.admin())
    }

    /// The file of a kubeconfig of any user with any groups.
    pub fn kubeconfig_as(&self, user: &str, groups: &[&str]) -> Result<PathBuf, Error> {
        self.write_kubeconfig(&format!("as-{user}"), &self.impersonate(user, groups))
    }

    /// The file of a kubeconfig of a user declared with [`Config::user`](super::Config::user).
    pub fn kubeconfig_of(&self, user: &str) -> Result<PathBuf, Error> {
        let known = self.config.users.iter().find(|known| known.name == user);
        let user = known.ok_or_else(|| Error::NoUser(user.to_owned()))?;
        self.write_kubeconfig(&user.name, &json!({ "token": user.token() }))
    }

    /// The file of a kubeconfig of a service account, which is made if it does not exist.
    pub async fn kubeconfig_of_service_account(&self, namespace: &str, name: &str) -> Result<PathBuf, Error> {
        let token = self.service_account_token(namespace, name).await?;
        self.write_kubeconfig(&format!("{namespace}.{name}"), &json!({ "token": token }))
    }

    /// A token of a service account, good for an hour; the account is made if it does not exist.
    pub async fn service_account_token(&self, namespace: &str, name: &str) -> Result<String, Error> {
        let accounts = Api::<ServiceAccount>::namespaced(self.client()?, namespace);
        if accounts.get_opt(name).await?.is_none() {
            let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
            let account = ServiceAccount { metadata, ..ServiceAccount::default() };
            accounts.create(&PostParams::default(), &account).await?;
        }
        let request = TokenRequest { spec: TokenRequestSpec::default(), ..TokenRequest::default() };
        let answer = accounts.create_token_request(name, &PostParams::default(), &request).await?;
        Ok(answer.status.map(|status| status.token).unwrap_or_default())
    }

    fn admin(&self) -> Value {
        json!({ "token": self.config.users[0].token() })
    }

    fn impersonate(&self, user: &str, groups: &[&str]) -> Value {
        json!({ "token": self.config.users[0].token(), "as": user, "as-groups": groups })
    }

    fn client_with(&self, user: Value) -> Result<kube::Client, Error> {
        let kubeconfig: Kubeconfig = serde_json::from_value(self.kubeconfig_value(&user))
            .map_err(|error| Error::Yaml { place: "the kubeconfig".to_owned(), reason: error.to_string() })?;
        Ok(kube::Client::try_from(config_now(kubeconfig)?)?)
    }

    fn write_kubeconfig(&self, name: &str, user: &Value) -> Result<PathBuf, Error> {
        let file = format!("{}.kubeconfig", name.replace([':', '/'], "-"));
        // JSON is YAML.
        Ok(self.state.write(&file, format!("{:#}\n", self.kubeconfig_value(user)))?)
    }

    fn kubeconfig_value(&self, user: &Value) -> Value {
        let ca = base64::engine::general_purpose::STANDARD.encode(self.ca_pem());
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "bed", "cluster": { "server": self.url(), "certificate-authority-data": ca } }],
            "users": [{ "name": "user", "user": user }],
            "contexts": [{ "name": "bed", "context": { "cluster": "bed", "user": "user" } }],
            "current-context": "bed",
        })
    }
}

/// The library reads kubeconfigs in an async function, for the sake of files and plugins; ours has neither, so the future
/// is done at its first poll.
fn config_now(kubeconfig: Kubeconfig) -> Result<kube::Config, Error> {
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options);
    Ok(config.now_or_never().expect("a kubeconfig that names no file and no plugin is read without waiting")?)
}

pub const CA_FILE: &str = "ca.crt";
pub const SERVING_FILE: &str = "serving.crt";
pub const SERVING_KEY_FILE: &str = "serving.key";
pub const SERVICE_ACCOUNT_KEY_FILE: &str = "service-account.key";
pub const SERVICE_ACCOUNT_PUBLIC_FILE: &str = "service-account.pub";

/// What others need to know of it.
#[derive(Debug)]
pub struct Pki {
    ca: String,
}

impl Pki {
    /// Makes all of it.
    pub fn make(names: Vec<String>, state: &StateDir) -> Result<Pki, Error> {
        let mut ca = CertificateParams::default();
        ca.distinguished_name.push(DnType::CommonName, "testbed");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let ca_key = KeyPair::generate()?;
        let ca_pem = ca.self_signed(&ca_key)?.pem();

        let mut serving = CertificateParams::new(names)?;
        serving.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        serving.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let serving_key = KeyPair::generate()?;
        let serving = serving.signed_by(&serving_key, &Issuer::new(ca, ca_key))?;

        state.write(CA_FILE, &ca_pem)?;
        state.write(SERVING_FILE, serving.pem())?;
        state.write(SERVING_KEY_FILE, serving_key.serialize_pem())?;
        let accounts = KeyPair::generate()?;
        state.write(SERVICE_ACCOUNT_KEY_FILE, accounts.serialize_pem())?;
        state.write(SERVICE_ACCOUNT_PUBLIC_FILE, accounts.public_key_pem())?;
        Ok(Pki { ca: ca_pem })
    }

    /// The CA's certificate.
    pub fn ca_pem(&self) -> &str {
        &self.ca
    }
}
