//! What an edit reaches: with scopes, one row of each table and one resource, however many hosts there are.

use super::redirects::following;
use super::world::{http_port, http_scope, ingress, service, settings};
use pipeline::{Pipeline, Settings, settings::Packing};
use serde_json::json;
use std::net::Ipv4Addr;

/// How many rows an edit of one host computed, and what was published.
fn edit(packing: Packing, hosts: usize) -> (u64, Vec<String>) {
    let mut pipeline = Pipeline::new(&Settings { packing, ..Settings::default() });
    let put = |pipeline: &mut Pipeline, object: kinds::Object| pipeline.put(&object.key(), Some(object));
    put(&mut pipeline, service("web", Ipv4Addr::LOCALHOST));
    put(&mut pipeline, ingress("wild", "*.example.com", "/", "web"));
    for number in 0..hosts {
        put(&mut pipeline, ingress(&format!("h{number}"), &format!("h{number}.example.com"), "/", "web"));
    }
    pipeline.settle();
    put(&mut pipeline, ingress("h1", "h1.example.com", "/other", "web"));
    let output = pipeline.settle();
    let names = output.xds.upserts.iter().map(|resource| format!("{} {}", resource.kind, resource.name));
    assert!(output.xds.removes.is_empty());
    (pipeline.engine().last_batch().computed, names.collect())
}

#[test]
fn one_scope_whatever_the_number_of_hosts() {
    let (few, published) = edit(Packing::Scoped, 3);
    assert_eq!(published, [format!("srds {}", http_scope("h1.example.com"))]);
    assert_eq!(edit(Packing::Scoped, 2000), (few, published));
}

#[test]
fn a_table_is_published_whole() {
    let (_, published) = edit(Packing::Plain, 3);
    assert_eq!(published, ["rds ingress_http"]);
}

#[test]
fn a_host_that_comes_or_goes_is_one_scope() {
    let mut pipeline = Pipeline::new(&Settings { packing: Packing::Scoped, ..Settings::default() });
    let mut computed = Vec::new();
    for number in 0..500 {
        let object = ingress(&format!("h{number}"), &format!("h{number}.example.com"), "/", "web");
        pipeline.put(&object.key(), Some(object));
        let changes = pipeline.settle().xds;
        let scopes = changes.upserts.iter().filter(|resource| resource.kind == xds::Kind::ScopedRoute);
        let names: Vec<&str> = scopes.map(|resource| &*resource.name).collect();
        let own = http_scope(&format!("h{number}.example.com"));
        if number > 0 {
            assert_eq!(names, [own]);
            computed.push(pipeline.engine().last_batch().computed);
        }
    }
    assert_eq!(computed.first(), computed.last());
    let object = ingress("h7", "h7.example.com", "/", "web");
    pipeline.put(&object.key(), None);
    let changes = pipeline.settle().xds;
    assert_eq!(changes.removes, [(xds::Kind::ScopedRoute, http_scope("h7.example.com").into())]);
    assert!(changes.upserts.is_empty());
}

/// Where some host follows redirects, there is a list of all hosts besides.
#[test]
fn the_list_of_hosts_that_redirects_need_changes_with_the_hosts_alone() {
    let mut pipeline = Pipeline::new(&settings(Packing::Scoped));
    let mut put = |object: kinds::Object, there: bool| {
        pipeline.put(&object.key(), there.then_some(object));
        let changes = pipeline.settle().xds;
        let scopes = changes.upserts.into_iter().filter(|resource| resource.kind == xds::Kind::ScopedRoute);
        let names = scopes.map(|resource| resource.name.to_string());
        let gone = changes.removes.into_iter().filter(|(kind, _)| *kind == xds::Kind::ScopedRoute);
        let gone = gone.map(|(_, name)| format!("-{name}"));
        names.chain(gone).collect::<Vec<String>>()
    };
    put(service("web", Ipv4Addr::LOCALHOST), true);
    put(ingress("a", "a.example.com", "/", "web"), true);
    let follower = following("web", "follower.example.com", json!({}), json!({}));
    let scope = |name: &str| http_scope(&format!("{name}.example.com"));
    let list = envoy::name::redirects_scope(&http_port());
    assert_eq!(put(follower.clone(), true), [scope("follower"), list.clone()]);
    assert_eq!(put(ingress("a", "a.example.com", "/other", "web"), true), [scope("a")]);
    assert_eq!(put(ingress("b", "b.example.com", "/", "web"), true), [scope("b"), list.clone()]);
    let gone = put(ingress("b", "b.example.com", "/", "web"), false);
    assert_eq!(gone, [list.clone(), format!("-{}", scope("b"))]);
    let gone = put(follower, false);
    assert!(gone.contains(&format!("-{list}")), "{gone:?}");
    assert_eq!(put(ingress("b", "b.example.com", "/", "web"), true), [scope("b")]);
}
