//! cert-manager issues all certificates, by the objects of the page that people follow: those of the xDS connection, by its CA Issuer, and
//! those of hosts, by an ACME server that sends its challenges to Sesame's proxies.
//!
//! In: `docs/certificates.md`. Out: an Ingress, an HTTPProxy and a Gateway that are served over HTTPS with certificates of the ACME server,
//! one of which is renewed while its host redirects plaintext to HTTPS; and renewed certificates of the xDS connection, without an end
//! of a stream. What the page does not say is done nowhere, but for the URL and the CA of the ACME server.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, Result, anyhow, ensure};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use testbed::image::ready;
use testbed::{AcmeServer, CertManager, Client, eventually};

use super::forms::{gateway_service, remove_gateways};
use super::{settle, traffic, uninstall};
use crate::TrafficReport;
use crate::installation::{self, Installation, LIMIT, NAMESPACE};
use crate::page::blocks;

const PAGE: &str = include_str!("../../../../docs/certificates.md");
const HOSTS: &str = "## Hosts whose certificates cert-manager issues";
const XDS: &str = "### From cert-manager";
/// The ACME server of the page.
const SERVER: &str = "    server: https://acme-v02.api.letsencrypt.org/directory\n";
/// The hosts of the page on the shared proxies, and the one on the Gateway. Certificate and Secret have the first part for a name.
const SHARED: [&str; 2] = ["shop.example.com", "pay.example.com"];
const ON_GATEWAY: &str = "books.example.com";
/// The certificates of the xDS connection.
const OF_XDS: [&str; 2] = ["sesamecert", "envoycert"];

pub(super) async fn cert_manager(installation: &Installation) -> Result<TrafficReport> {
    uninstall(installation).await?;
    let crds = [parts::folder("gateway-api-crds")?.join("standard"), parts::folder("cert-manager-crds")?.join("crds")];
    for folder in &crds {
        let folder = folder.to_str().context("the path of the CRDs is text")?;
        installation.kubectl(&["apply", "--server-side", "--filename", folder]).await?;
    }
    installation.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]).await?;
    installation.cluster.load_image(ready::acme_solver()?).await?;
    let acme = AcmeServer::start().await?;
    let _manager = CertManager::start(installation.cluster.kubeconfig(), acme.dns()).await?;

    installation.kubectl(&["create", "namespace", NAMESPACE]).await?;
    apply(installation, NAMESPACE, &blocks(PAGE, XDS, "yaml")?.join("---\n")).await?;
    install(installation).await?;
    let (traffic, at) = traffic(installation).await?;
    hosts(installation, &acme, at).await?;
    renew_xds(installation).await?;
    let report = settle(traffic).await;

    // Challenges are finished by cert-manager before they go: it has to live until then.
    for folder in crds.iter().rev() {
        let folder = folder.to_str().context("the path of the CRDs is text")?;
        installation.kubectl(&["delete", "--filename", folder, "--wait=true", "--timeout=170s"]).await?;
    }
    Ok(report)
}

/// Installs the chart, which waits for the certificates.
async fn install(installation: &Installation) -> Result<()> {
    let chart = installation::chart();
    let chart = chart.to_str().context("the path of the chart is text")?;
    let words = ["install", "sesame", chart, "--namespace", NAMESPACE, "--set"];
    let words = [&words[..], &["envoy.kind=Deployment,certificates.issuer=none,gatewayClass.create=true"]].concat();
    installation.run(parts::program("helm")?, &words).await?;
    for name in ["sesame", "envoy"] {
        installation.cluster.deployment_available(NAMESPACE, name).await?;
    }
    let secrets = Api::<Secret>::namespaced(installation.cluster.client()?, NAMESPACE);
    ensure!(secrets.get_opt("sesame-ca").await?.is_none(), "the controller has made a CA of its own");
    for name in OF_XDS {
        issued(installation, NAMESPACE, name, 1).await?;
    }
    Ok(())
}

/// The hosts of the page get their certificates, and one of them another.
async fn hosts(installation: &Installation, acme: &AcmeServer, at: SocketAddr) -> Result<()> {
    let objects = blocks(PAGE, HOSTS, "yaml")?.join("---\n");
    let authority = json!(ByteString(acme.ca().pem().into()));
    let server = format!("    server: {}\n    caBundle: {authority}\n", acme.directory());
    ensure!(objects.contains(SERVER), "the page names another ACME server");
    for host in SHARED {
        acme.resolve(host, at.ip()).await?;
    }
    apply(installation, &installation.apps, &objects.replace(SERVER, &server)).await?;
    let (service, gateway) = gateway_service(installation, first(ON_GATEWAY)).await?;
    acme.resolve(ON_GATEWAY, gateway).await?;
    for (host, address) in SHARED.map(|host| (host, at.ip())).into_iter().chain([(ON_GATEWAY, gateway)]) {
        issued(installation, &installation.apps, first(host), 1).await?;
        shown(host, address, "").await?;
    }
    ensure!(acme.validated() == 3, "the ACME server validated {} challenges, not 3", acme.validated());

    let renewed = SHARED[1];
    let redirect = Client::new(at).host(renewed).get("/").await?.status;
    ensure!(redirect == 301, "plaintext of {renewed} is answered {redirect}");
    let before = shown(renewed, at.ip(), "").await?;
    renew(installation, &installation.apps, first(renewed)).await?;
    issued(installation, &installation.apps, first(renewed), 2).await?;
    shown(renewed, at.ip(), &before).await?;
    ensure!(acme.validated() == 4, "the ACME server validated {} challenges, not 4", acme.validated());
    remove_gateways(installation, &service).await?;
    installation
        .kubectl(&["--namespace", &installation.apps, "delete", "ingress/shop", "httpproxy/pay"])
        .await
        .map(drop)
}

/// New certificates for the connections between controllers and proxies; all of these stay.
async fn renew_xds(installation: &Installation) -> Result<()> {
    let ended = async || installation.metric("sesame_xds_streams_ended_total", "").await;
    let before = ended().await?;
    for name in OF_XDS {
        renew(installation, NAMESPACE, name).await?;
    }
    for name in OF_XDS {
        issued(installation, NAMESPACE, name, 2).await?;
    }
    let certificate = certificates(installation, NAMESPACE)?.get(OF_XDS[0]).await?;
    let expiry: Timestamp = text(&certificate.data["status"]["notAfter"]).parse()?;
    let wanted = expiry.as_second() as f64 * installation.pods(NAMESPACE, "sesame").await?.len() as f64;
    let read = async || match installation.metric("sesame_xds_certificate_expiry_timestamp_seconds", "server").await {
        Ok(sum) if sum == wanted => Ok(()),
        other => Err(format!("{other:?}, not {wanted}")),
    };
    eventually("all controllers to have the new certificate", LIMIT, read).await?;
    let after = ended().await?;
    ensure!(after == before, "{} xDS streams were ended", after - before);
    Ok(())
}

/// Applies objects that name no namespace.
async fn apply(installation: &Installation, namespace: &str, objects: &str) -> Result<()> {
    let file = tempfile::Builder::new().suffix(".yaml").tempfile()?;
    std::fs::write(file.path(), objects)?;
    let path = file.path().to_str().context("the path of a temporary file is text")?;
    installation.kubectl(&["--namespace", namespace, "apply", "--filename", path]).await.map(drop)
}

fn first(host: &str) -> &str {
    host.split('.').next().unwrap_or(host)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn certificates(installation: &Installation, namespace: &str) -> Result<Api<DynamicObject>> {
    let kind = GroupVersionKind::gvk("cert-manager.io", "v1", "Certificate");
    let resource = ApiResource::from_gvk_with_plural(&kind, "certificates");
    Ok(Api::namespaced_with(installation.cluster.client()?, namespace, &resource))
}

/// Waits until a Certificate has been issued that many times; when it is late, the error says what its challenges wait for.
async fn issued(installation: &Installation, namespace: &str, name: &str, times: u64) -> Result<()> {
    let certificates = certificates(installation, namespace)?;
    let look = async || {
        let status = certificates.get(name).await.map_err(|error| error.to_string())?.data["status"].take();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let is_ready = conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True");
        if is_ready && status["revision"] == times { Ok(()) } else { Err(status.to_string()) }
    };
    let Err(late) = eventually(format!("the Certificate {name}, issued {times} times"), LIMIT, look).await else {
        return Ok(());
    };
    let reasons = [
        "--namespace",
        namespace,
        "get",
        "challenges",
        "-o",
        "jsonpath={range .items[*]}{.spec.dnsName}: {.status.reason}; {end}",
    ];
    Err(anyhow!(late).context(installation.kubectl(&reasons).await.unwrap_or_default()))
}

/// Has cert-manager issue a Certificate again, as `cmctl renew` does.
async fn renew(installation: &Installation, namespace: &str, name: &str) -> Result<()> {
    let certificates = certificates(installation, namespace)?;
    let mut status = certificates.get(name).await?.data["status"].take();
    let issuing = json!({ "type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "",
        "lastTransitionTime": Timestamp::now().to_string() });
    let conditions = status["conditions"].as_array_mut().context("a Certificate without conditions")?;
    conditions.retain(|one| one["type"] != "Issuing");
    conditions.push(issuing);
    let patch = json!({ "status": { "conditions": conditions } });
    certificates.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// Waits until a host is served with another certificate of the ACME server than the one with this serial number; gives its own.
async fn shown(host: &str, address: IpAddr, other_than: &str) -> Result<String> {
    let client = Client::new(SocketAddr::new(address, 443)).host(host).https();
    let look = async || {
        let answer = client.get("/").await.map_err(|failure| failure.to_string())?;
        let seen = answer.certificate().ok_or("no certificate")?;
        let is_right = seen.issuer.contains("Pebble Intermediate CA")
            && seen.sans == [format!("DNS:{host}")]
            && seen.serial != other_than;
        if answer.status == 200 && is_right {
            Ok(seen.serial.clone())
        } else {
            Err(format!("{} {seen:?}", answer.status))
        }
    };
    Ok(eventually(format!("{host} to be served with a certificate of the ACME server"), LIMIT, look).await?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn the_page_has_the_objects_of_all_certificates() {
        let (hosts, xds) = (blocks(PAGE, HOSTS, "yaml").unwrap().concat(), blocks(PAGE, XDS, "yaml").unwrap().concat());
        assert_eq!(hosts.matches(SERVER).count(), 2);
        for host in SHARED.iter().chain([&ON_GATEWAY]) {
            assert!(hosts.contains(host), "{host}: {hosts}");
        }
        for name in OF_XDS {
            assert!(xds.contains(&format!("secretName: {name}\n")), "{name}: {xds}");
        }
    }
}
