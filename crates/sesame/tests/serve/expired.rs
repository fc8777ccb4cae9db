//! A certificate of the xDS server that has expired and that somebody else has to renew: the replica runs, says so, and serves xDS as soon
//! as there is a valid one.

use std::time::{Duration, SystemTime};

use certgen::{Certificates, Format, Request};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use testbed::Net;

use crate::bed::{Bed, Replica, TIMEOUT};

const HOUR: Duration = Duration::from_secs(3600);

/// Certificates that were made so long ago and are valid for an hour.
fn issued(namespace: &str, ago: Duration) -> Certificates {
    let (namespace, now) = (namespace.to_owned(), SystemTime::now() - ago);
    Certificates::issue(&Request { namespace, fleet: None, lifetime: HOUR, now }).unwrap()
}

/// Waits until it is not ready for this reason and no other.
async fn is_unready_because(replica: &Replica, why: &str) {
    let look = async || match replica.page("/readyz").await? {
        (503, said) if said.starts_with("waiting for the certificates of the xDS server") && said.contains(why) => {
            Ok(())
        }
        other => Err(format!("{other:?}")),
    };
    replica.process.expect_ok(&format!("unready: {why}"), TIMEOUT, look).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_have_expired_are_waited_for_and_used_once_they_are_renewed() {
    let bed = Bed::start().await;
    let folder = bed.state().path().join("mounted");
    let write = |ago: Duration| certgen::files::write(&issued("default", ago), &folder, true).unwrap();
    write(2 * HOUR);
    let file = |name: &str| folder.join(name).display().to_string();
    let (ca, certificate, key) = (file("cacert.pem"), file("sesamecert.pem"), file("sesamekey.pem"));
    let flags = [("sesame-cafile", &*ca), ("sesame-cert-file", &*certificate), ("sesame-key-file", &*key)];
    let address = Net::here().unwrap().address();
    let replica = bed.replica_without_files("sesame-0", address, &flags).await;
    is_unready_because(&replica, "sesamecert.pem expired on").await;
    let log = replica.process.log().text();
    assert!(log.contains(": SES1046: ") && !log.contains("serving xDS"), "{log}");
    assert_eq!(replica.debug_page("/debug/status").await.0, 200);

    // Those with which the Envoys of the bed connect. A certificate whose key is not there yet is half a renewal.
    let renew = |from: &str, to: &str| std::fs::copy(bed.state().path().join("certs").join(from), to).unwrap();
    renew("sesamecert.pem", &certificate);
    is_unready_because(&replica, "cannot be used").await;
    renew("cacert.pem", &ca);
    renew("sesamekey.pem", &key);
    let replica = replica.ready().await;
    let envoy = bed.envoy(replica.xds()).await;
    replica.in_step(1).await;
    envoy.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_another_issuer_that_have_expired_are_waited_for() {
    let bed = Bed::start().await;
    let namespace = bed.api.namespace("expired").await.unwrap();
    let secrets = Api::<Secret>::namespaced(bed.api.client().unwrap(), &namespace);
    let made = |ago: Duration| {
        let all = certgen::secrets(&issued(&namespace, ago), &namespace, Format::Compact, "");
        // As cert-manager has it.
        let annotation = || ("cert-manager.io/certificate-name".to_owned(), "xds".to_owned());
        all.into_iter().map(move |mut secret| {
            secret.metadata.labels = None;
            secret.metadata.annotations = Some([annotation()].into());
            secret
        })
    };
    for secret in made(2 * HOUR) {
        secrets.create(&PostParams::default(), &secret).await.unwrap();
    }
    let folder = bed.state().path().join("issued");
    let flags = [("xds-certificates-dir", folder.to_str().unwrap()), ("namespace", &*namespace)];
    let address = Net::here().unwrap().address();
    let replica = bed.replica_without_files("sesame-0", address, &flags).await;
    is_unready_because(
        &replica,
        "those in the Secret sesamecert cannot be used: the certificate in tls.crt expired on",
    )
    .await;
    let log = replica.process.log().text();
    assert!(log.contains("SES1046: xDS is not served: "), "{log}");
    for secret in made(Duration::ZERO) {
        let (name, patch) = (secret.metadata.name.clone().unwrap(), Patch::Merge(&secret));
        secrets.patch(&name, &PatchParams::default(), &patch).await.unwrap();
    }
    replica.ready().await;
}
