//! An authorization server that moves to other Services: requests that it allows pass all the time, and those that it denies never do.

use kinds::Object;
use serde_json::json;
use testbed::{auth_server::AuthServer, cases::object, certs::Ca};

use crate::bed::{Bed, secret, service, slice, undisturbed};

const ROUNDS: usize = 12;

fn extension(services: &[(&str, u32)]) -> Object {
    let services: Vec<_> =
        services.iter().map(|(name, weight)| json!({ "name": name, "port": 80, "weight": weight })).collect();
    object(&json!({
        "apiVersion": "projectcontour.io/v1alpha1", "kind": "ExtensionService",
        "metadata": { "name": "auth", "namespace": "a" },
        "spec": { "protocol": "h2c", "services": services, "timeoutPolicy": { "response": "5s" } },
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authorization_server_moves_to_other_services() {
    let mut bed = Bed::start("authorization-moved").await;
    let ca = Ca::new("authorization-moved");
    let tls = ca.leaf("auth").make().server_config();
    let servers = [AuthServer::start("s0", tls.clone()).await.unwrap(), AuthServer::start("s1", tls).await.unwrap()];
    let mut objects = bed.service("a", "web").await;
    objects.push(secret("a", "cert", &ca.leaf("*.example.com").make()));
    for (name, server) in ["s0", "s1"].into_iter().zip(&servers) {
        objects.extend([service("a", name), slice("a", name, &[server.ip()])]);
    }
    let host = json!({ "fqdn": "guarded.example.com", "tls": { "secretName": "cert" },
        "authorization": { "extensionRef": { "name": "auth" } } });
    objects.push(object(&json!({
        "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "name": "guarded", "namespace": "a" },
        "spec": { "virtualhost": host, "routes": [{ "services": [{ "name": "web", "port": 80 }] }] },
    })));
    objects.push(extension(&[("s0", 1)]));
    bed.apply(objects).await;

    let client = bed.https.clone().trust(&ca).sni("guarded.example.com");
    let of = || bed.load(&client, "guarded.example.com", "/", 2);
    let denied =
        of().vary(|_, request| request.header("x-auth", "deny")).expect(|answer| match answer.status.as_u16() {
            401 => Ok(()),
            other => Err(format!("{other} for a request that is denied")),
        });
    let loads = [of().start(), denied.start()];
    for load in &loads {
        load.answered(20).await;
    }
    for round in 1..=ROUNDS {
        let [from, to] = if round % 2 == 1 { ["s0", "s1"] } else { ["s1", "s0"] };
        if round % 3 == 0 {
            bed.apply([extension(&[(from, 1), (to, 3)])]).await;
            for load in &loads {
                load.answered(5).await;
            }
        }
        let (there, before) = (&servers[round % 2], servers[round % 2].asked());
        bed.apply([extension(&[(to, 1)])]).await;
        for load in &loads {
            load.answered(10).await;
        }
        assert!(there.asked() > before, "{to} is not asked in round {round}");
    }
    undisturbed(loads).await;
}
