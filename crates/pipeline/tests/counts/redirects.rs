//! The list of hosts that internal redirects are looked up in: where it is long, a host that comes or goes costs the control loop
//! nothing of it.

use super::{Bed, computed, ingress, service};
use engine::{Offloading, Progress};
use model::{FleetId, PortId};
use pipeline::{Output, large, redirects::RedirectScopes, settings::Packing};
use serde_json::json;
use testbed::cases::object;

/// An HTTPProxy whose redirects proxies follow.
fn following() -> kinds::Object {
    let route = json!({ "services": [{ "name": "web-0", "port": 80 }], "internalRedirectPolicy": {} });
    object(&json!({
        "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "name": "follows" },
        "spec": { "virtualhost": { "fqdn": "follows.example.com" }, "routes": [route] },
    }))
}

/// Works as the control loop does.
fn batch(bed: &mut Bed) -> Output {
    let mut output = Output::default();
    while bed.pipeline.step(&mut output) == Progress::More {}
    bed.pipeline.finish(&mut output);
    output
}

/// Puts a host beside so many others; gives the bed, and how often the list was computed for it by the control loop.
fn host_beside(others: usize) -> (Bed, u64) {
    let hosts = (0..others).map(|number| ingress(number, "/"));
    let mut bed = Bed::of(Packing::Scoped, hosts.chain([service(0), following()]));
    bed.pipeline.set_offloading(Offloading::Large);
    let lists = |bed: &Bed| computed(&bed.pipeline)["redirect scopes"];
    let before = lists(&bed);
    let new = ingress(others, "/");
    bed.pipeline.put(&new.key(), Some(new));
    batch(&mut bed);
    let after = lists(&bed);
    (bed, after - before)
}

#[test]
fn a_long_list_of_hosts_is_left_to_a_job() {
    let (bed, lists) = host_beside(10);
    assert_eq!((lists, bed.pipeline.engine().offloaded_of::<RedirectScopes>()), (1, 0), "a short one is not");

    let (mut bed, lists) = host_beside(large::HOSTS);
    assert_eq!((lists, bed.pipeline.engine().offloaded_of::<RedirectScopes>()), (0, 1));
    let job = bed.pipeline.next_job().unwrap();
    bed.pipeline.share_tables();
    let finished = job.run();
    bed.pipeline.reclaim_tables();
    drop(bed.pipeline.finish_job(finished));
    let list = envoy::name::redirects_scope(&PortId::new(FleetId::Shared, "ingress_http"));
    let published = batch(&mut bed).xds.upserts;
    assert_eq!(published.iter().map(|resource| &*resource.name).collect::<Vec<_>>(), [list.as_str()]);
    bed.pipeline.self_check().unwrap();
}
