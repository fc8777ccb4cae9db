//! The objects of a case: read as a folder's are, then given what only a test can have: certificates and backends.
//!
//! A Secret with the annotation `projectsesame.io/test-certificate` gets a certificate for the names in it, separated by
//! spaces, and `projectsesame.io/test-certificate-form` says what is special about it, good or bad (see [`pair`]). Keys are
//! never committed. A Secret or ConfigMap with the annotation `projectsesame.io/test-ca` gets the CA of the `backends`, that of
//! the `clients`' side, one of [client certificates](super::clients), or `garbage`. A Secret with the annotation
//! `projectsesame.io/test-crl` gets CRLs of those, or that of the `backends`, where their certificate may be revoked (`backends-revoked`), and one with `projectsesame.io/test-client-certificate` one of them with its key.
//! A Service with the annotation `projectsesame.io/test-authorization` has an authorization server behind it
//! ([`crate::auth_server`]), and no echo.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kinds::{ConfigMap, EndpointSlice, Object, Secret, Service};
use model::Transport;
use serde_json::{Value, json};
use source::folder::Limits;
use source::{Folder, Problem};

use super::{Backends, Case};
use crate::certs::{Ca, KeyType};
use crate::state::StateDir;

const CERTIFICATE: &str = "projectsesame.io/test-certificate";
const AUTHORITY: &str = "projectsesame.io/test-ca";
const REVOKED: &str = "projectsesame.io/test-crl";
const CLIENT: &str = "projectsesame.io/test-client-certificate";
const AUTHORIZATION: &str = "projectsesame.io/test-authorization";
const FORM: &str = "projectsesame.io/test-certificate-form";

/// An object from JSON, by its `apiVersion` and `kind`: for tests that make objects by the thousand.
///
/// # Panics
/// When it is none; the message says why.
pub fn object(value: &Value) -> Object {
    let text = |field: &str| value[field].as_str().unwrap_or_default();
    let kind = kinds::kind::of(text("apiVersion"), text("kind")).unwrap_or_else(|| panic!("no kind of ours: {value}"));
    match kinds::decode_json(kind, value.to_string().as_bytes()) {
        Ok(decoded) => decoded.object,
        Err(error) => panic!("{error}: {value}"),
    }
}

/// Reads the objects, starts what they need, and gives what could not be read.
pub(super) async fn read(
    case: &Case,
    settings: &pipeline::Settings,
    ca: &Ca,
    backends: &mut Backends,
) -> Result<(Vec<Object>, Vec<Problem>), String> {
    let (mut objects, problems) = written(case, ca, backends).await?;
    let slices = slices(&objects, settings, backends).await?;
    objects.extend(slices.iter().map(object));
    Ok((objects, problems))
}

/// The same as JSON, for an API server.
pub(super) async fn values(
    case: &Case,
    settings: &pipeline::Settings,
    ca: &Ca,
    backends: &mut Backends,
) -> Result<Vec<Value>, String> {
    let (objects, problems) = written(case, ca, backends).await?;
    if let Some(problem) = problems.first() {
        return Err(format!("it cannot be read: {problem}"));
    }
    let documents: Vec<Value> = serde_saphyr::from_multiple(&case.objects).map_err(|error| error.to_string())?;
    let mut values: Vec<Value> = documents.into_iter().filter(Value::is_object).collect();
    for value in &mut values {
        if value["kind"] == "List" {
            return Err("it has a list, which is no object".to_owned());
        }
        let of = |field: &str| value[field].as_str().unwrap_or_default();
        let kind = kinds::kind::of(of("apiVersion"), of("kind"));
        if kind.is_none_or(kinds::Kind::is_namespaced) && value["metadata"]["namespace"].is_null() {
            value["metadata"]["namespace"] = "default".into();
        }
        if value["kind"] == "Ingress" {
            complete_paths(value);
        }
    }
    for secret in objects.iter().filter_map(|object| object.get::<Secret>()) {
        let (namespace, name) = (&*secret.meta.namespace, &*secret.meta.name);
        let is_it = |value: &&mut Value| {
            value["kind"] == "Secret"
                && value["metadata"]["namespace"] == namespace
                && value["metadata"]["name"] == name
        };
        let Some(value) = values.iter_mut().find(is_it) else { continue };
        for entry in ["tls.crt", "tls.key", "ca.crt", "crl.pem"] {
            if let Ok(Some(content)) = secret.get(entry) {
                value["data"][entry] = STANDARD.encode(content).into();
            }
        }
    }
    for map in objects.iter().filter_map(|object| object.get::<ConfigMap>()) {
        let is_it = |value: &&mut Value| {
            value["kind"] == "ConfigMap"
                && value["metadata"]["namespace"] == *map.meta.namespace
                && value["metadata"]["name"] == *map.meta.name
        };
        if let Ok(Some(content)) = map.data.get("ca.crt")
            && let Some(value) = values.iter_mut().find(is_it)
        {
            value["data"]["ca.crt"] = (&**content).into();
        }
    }
    values.extend(slices(&objects, settings, backends).await?);
    Ok(values)
}

/// Gives paths the type that they have without one: an API server wants it written.
fn complete_paths(ingress: &mut Value) {
    let rules = ingress["spec"]["rules"].as_array_mut().into_iter().flatten();
    for path in rules.filter_map(|rule| rule["http"]["paths"].as_array_mut()).flatten() {
        if path.is_object() && path["pathType"].is_null() {
            path["pathType"] = "ImplementationSpecific".into();
        }
    }
}

/// The objects that stand in the case, with certificates and with the backends that they name.
async fn written(case: &Case, ca: &Ca, backends: &mut Backends) -> Result<(Vec<Object>, Vec<Problem>), String> {
    let folder = StateDir::new("case").map_err(|error| error.to_string())?;
    folder.write("objects.yaml", &case.objects).map_err(|error| error.to_string())?;
    let batch = Folder::read(folder.path(), Limits::default()).map_err(|error| error.to_string())?;
    let problems = batch.problems.into_values().flatten().collect();
    let mut objects: Vec<Object> = batch.changes.into_iter().filter_map(|change| change.object).collect();
    for object in &mut objects {
        if let Some(secret) = object.get::<Secret>()
            && let Some(filled) = filled(secret, ca, backends)?
        {
            *object = Object::new(object.kind(), filled);
        }
        if let Some(map) = object.get::<ConfigMap>()
            && let Some(whose) = map.meta.annotations.get(AUTHORITY).ok().flatten()
        {
            let meta = json!({ "namespace": map.meta.namespace, "name": map.meta.name });
            let data = json!({ "ca.crt": authority(whose, ca, backends)? });
            *object = self::object(&json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data }));
        }
    }
    for address in addresses(&case.objects) {
        backends.at(address).await.map_err(|error| error.to_string())?;
    }
    Ok((objects, problems))
}

/// The endpoints of all Services that have none in the case.
async fn slices(
    objects: &[Object],
    settings: &pipeline::Settings,
    backends: &mut Backends,
) -> Result<Vec<Value>, String> {
    let mut slices = Vec::new();
    for service in objects.iter().filter_map(|object| object.get::<Service>()) {
        slices.extend(slice(service, objects, settings, backends).await?);
    }
    Ok(slices)
}

/// The addresses of backends that a case mentions.
fn addresses(text: &str) -> BTreeSet<Ipv4Addr> {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != '.');
    words.filter(|word| word.starts_with("198.18.100.")).filter_map(|word| word.parse().ok()).collect()
}

fn filled(secret: &Secret, ca: &Ca, backends: &Backends) -> Result<Option<Secret>, String> {
    let annotation = |name: &str| secret.meta.annotations.get(name).ok().flatten();
    if let Some(whose) = annotation(AUTHORITY) {
        let pem = authority(whose, ca, backends)?;
        return Ok(Some(secret.clone().with([("ca.crt".into(), pem.as_bytes().into())])));
    }
    if let Some(which) = annotation(REVOKED) {
        let pem = backends.crls(which)?;
        return Ok(Some(secret.clone().with([("crl.pem".into(), pem.as_bytes().into())])));
    }
    if let Some(name) = annotation(CLIENT) {
        let leaf = backends.clients().named(name)?;
        let entries = [("tls.crt", leaf.chain_pem()), ("tls.key", leaf.key_pem())];
        return Ok(Some(secret.clone().with(entries.map(|(name, pem)| (name.into(), pem.as_bytes().into())))));
    }
    let Some(names) = annotation(CERTIFICATE) else { return Ok(None) };
    let names: Vec<&str> = names.split(' ').collect();
    let (chain, key) = pair(ca, &names, annotation(FORM).map_or("", |form| form))?;
    let entries = [("tls.crt", chain), ("tls.key", key)].map(|(name, pem)| (name.into(), pem.as_bytes().into()));
    Ok(Some(secret.clone().with(entries)))
}

/// The CA of somebody.
fn authority(whose: &str, ca: &Ca, backends: &Backends) -> Result<String, String> {
    match whose {
        "backends" => Ok(backends.ca().pem().to_owned()),
        "clients" => Ok(ca.pem().to_owned()),
        "garbage" => Ok("no certificate at all".to_owned()),
        other => backends.clients().cas(other),
    }
}

/// A chain and a key of a form.
fn pair(ca: &Ca, names: &[&str], form: &str) -> Result<(String, String), String> {
    let (first, more) = names.split_first().ok_or("a certificate needs a name")?;
    let leaf = |ca: &Ca| more.iter().fold(ca.leaf(first), |leaf, name| leaf.dns(name));
    let made = match form {
        "expired" => leaf(ca).expired(),
        "p384" => leaf(ca).key(KeyType::P384),
        "rsa" => leaf(ca).key(KeyType::Rsa2048),
        "ed25519" => leaf(ca).key(KeyType::Ed25519),
        "chain" => leaf(&ca.intermediate("between")),
        "nameless" => ca.nameless_leaf(""),
        _ => leaf(ca),
    };
    let made = made.make();
    let (chain, key) = (made.chain_pem().to_owned(), made.key_pem().to_owned());
    Ok(match form {
        "" | "expired" | "p384" | "rsa" | "ed25519" | "chain" | "nameless" => (chain, key),
        "openssl" => (chain, made.openssl_key_pem()),
        "wrong-key" => (chain, made.wrong_key_pem()),
        "truncated" => (made.truncated_pem(), key),
        "garbage" => (made.garbage_pem(), key),
        "swapped" => (key, chain),
        _ => return Err(format!("there is no form {form} of certificates")),
    })
}

/// The endpoints of a Service that has none in the case.
async fn slice(
    service: &Service,
    objects: &[Object],
    settings: &pipeline::Settings,
    backends: &mut Backends,
) -> Result<Option<Value>, String> {
    let meta = &service.meta;
    let of_service = |slice: &&EndpointSlice| {
        slice.meta.namespace == meta.namespace && slice.service_name().ok().flatten() == Some(&*meta.name)
    };
    let known = resolve::Service::read(service, &settings.resolve);
    let own = objects.iter().filter_map(|object| object.get::<EndpointSlice>().map(|slice| &**slice));
    if known.target != resolve::service::Target::Slices || own.into_iter().any(|slice| of_service(&slice)) {
        return Ok(None);
    }
    let name = format!("{}/{}", meta.namespace, meta.name);
    let address = match meta.annotations.get(AUTHORIZATION).ok().flatten() {
        Some(_) => backends.auth_server(&name).await,
        None => backends.named(&name).await,
    };
    let address = address.map_err(|error| error.to_string())?;
    let ports: Vec<_> = known
        .ports
        .iter()
        .filter_map(|port| {
            let (number, transport) = match port.transport? {
                Transport::Tcp if port.protocol.is_tls() => (443, "TCP"),
                Transport::Tcp => (80, "TCP"),
                Transport::Udp => (9000, "UDP"),
            };
            Some(json!({ "name": port.name, "port": number, "protocol": transport }))
        })
        .collect();
    Ok(Some(json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "namespace": meta.namespace,
            "name": format!("{}-test", meta.name),
            "labels": { "kubernetes.io/service-name": meta.name },
        },
        "addressType": "IPv4",
        "ports": ports,
        "endpoints": [{ "addresses": [address] }],
    })))
}
