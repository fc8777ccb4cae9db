//! Secrets that Envoy refuses, where a holder cluster prefetches them: it lives, the other certificates of the response and of
//! the holder are there, and what was refused does not stand in the way of the holder's next update.
//!
//! Nothing here has passed our own checks of certificates: these are the rejections that those are to prevent.

use std::net::SocketAddr;

use envoy_api::Message;
use testbed::certs::{Ca, Leaf};
use testbed::{Envoy, Net};
use xds::{Kind, Resource};

use crate::bed::{Replica, address, launch};
use crate::secrets::{on_demand, refused, secret, shown};
use crate::world::routes;

/// A holder of these secrets.
fn holder(name: &str, secrets: &[&str]) -> Resource {
    let secrets: Vec<String> = secrets.iter().map(|&name| name.to_owned()).collect();
    let cluster = envoy::cluster::holder::holder(name, secrets.clone());
    let holder = Resource::new(Kind::Cluster, name, cluster.encode_to_vec());
    secrets.into_iter().fold(holder, |holder, secret| holder.refers_to(Kind::Secret, secret))
}

/// Waits until Envoy has these secrets.
async fn has(replica: &Replica, names: &[&str]) {
    for name in names {
        replica.taken(Kind::Secret, name).await;
    }
}

struct Bed {
    ca: Ca,
    replica: Replica,
    envoy: Envoy,
    at: SocketAddr,
}

impl Bed {
    async fn start(first: impl FnOnce(&Ca) -> Vec<Resource>) -> Bed {
        let (ca, at) = (Ca::new("holders"), Net::here().unwrap().socket(443));
        let replica = Replica::start(address(), None);
        let mut resources = first(&ca);
        resources.extend([routes([]), on_demand(at)]);
        replica.publish(resources);
        let envoy = launch(replica.address, None, None).await;
        envoy.ready().await.unwrap();
        Bed { ca, replica, envoy, at }
    }

    async fn shown(&self, name: &str) -> Option<String> {
        shown(self.at, name, &self.ca).await
    }

    /// Ends the server; all of these are shown, and Envoy is alive.
    async fn all_outlive_the_server(self, names: &[&str]) {
        let Bed { ca, replica, envoy, at } = self;
        has(&replica, names).await;
        replica.stop().await;
        for name in names {
            assert!(shown(at, name, &ca).await.is_some(), "{name} without a server");
        }
        envoy.ready().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_secret_harms_neither_its_holder_nor_envoy() {
    let bed = Bed::start(|ca| {
        let good = ca.leaf("good.example.com").make();
        vec![holder("hold", &["good.example.com"]), secret("good.example.com", &good, &good)]
    })
    .await;
    let mut events = bed.replica.server.events();
    let [bad, late] = ["bad.example.com", "late.example.com"].map(|name| bed.ca.leaf(name).make());

    // Prefetched, refused, then asked for by the listener, which is its second user.
    bed.replica.publish(vec![
        holder("hold", &["bad.example.com", "good.example.com"]),
        secret("bad.example.com", &bad, &late),
    ]);
    refused(&mut events, "bad.example.com").await;
    // Until it has been told that the secret is gone, a handshake for it would end Envoy.
    bed.replica.in_step().await;
    assert_eq!(bed.shown("bad.example.com").await, None);
    assert!(bed.shown("good.example.com").await.is_some());

    // An update of the holder, which is one more user, is not refused because of it.
    bed.replica.publish(vec![
        holder("hold", &["bad.example.com", "good.example.com", "late.example.com"]),
        secret("late.example.com", &late, &late),
    ]);
    has(&bed.replica, &["late.example.com"]).await;
    assert_eq!(bed.shown("bad.example.com").await, None);

    // Mended. As `removed` took it from the holder, the holder is changed for it.
    bed.replica.publish(vec![holder("hold", &["good.example.com", "late.example.com"])]);
    bed.replica.taken(Kind::Cluster, "hold").await;
    bed.replica.publish(vec![
        holder("hold", &["bad.example.com", "good.example.com", "late.example.com"]),
        secret("bad.example.com", &bad, &bad),
    ]);
    bed.all_outlive_the_server(&["bad.example.com", "good.example.com", "late.example.com"]).await;
}

/// The holder changes before the rejection has come back.
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_changes_while_a_refusal_is_under_way_does_not_end_envoy() {
    let bed = Bed::start(|ca| {
        let first = ca.leaf("first.example.com").make();
        vec![holder("hold", &["first.example.com"]), secret("first.example.com", &first, &first)]
    })
    .await;
    let other = bed.ca.leaf("first.example.com").make();
    let mut names = vec!["first.example.com".to_owned()];
    for round in 0..20 {
        let name = format!("bad{round}.example.com");
        let leaf = bed.ca.leaf(&name).make();
        names.push(name.clone());
        let list: Vec<&str> = names.iter().map(String::as_str).collect();
        bed.replica.publish(vec![holder("hold", &list), secret(&name, &leaf, &leaf)]);
        has(&bed.replica, &[&name]).await;
        // Renewed with a key that is not its own, and at once the holder gets one more name.
        let more = format!("more{round}.example.com");
        names.push(more.clone());
        let list: Vec<&str> = names.iter().map(String::as_str).collect();
        bed.replica.publish(vec![secret(&name, &bed.ca.leaf(&name).make(), &other)]);
        bed.replica.publish(vec![holder("hold", &list), secret(&more, &other, &other)]);
        has(&bed.replica, &[&more]).await;
        bed.envoy.ready().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_secret_of_many_leaves_the_others_in_their_holders() {
    const SECRETS: usize = 40;
    let names: Vec<String> = (0..SECRETS).map(|number| format!("h{number}.example.com")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let bad = 17;
    let bed = Bed::start(|ca| {
        let leaves: Vec<Leaf> = all.iter().map(|name| ca.leaf(name).make()).collect();
        let key = |number: usize| if number == bad { &leaves[0] } else { &leaves[number] };
        let secrets = (0..SECRETS).map(|number| secret(all[number], &leaves[number], key(number)));
        let holders = all.chunks(10).enumerate().map(|(number, names)| holder(&format!("hold{number}"), names));
        holders.chain(secrets).collect()
    })
    .await;
    let good: Vec<&str> = all.iter().copied().filter(|name| *name != all[bad]).collect();
    has(&bed.replica, &good).await;
    assert_eq!(bed.shown(all[bad]).await, None);
    bed.all_outlive_the_server(&good).await;
}
