//! A script of Emissary's Module that Envoy does not compile: the Module is told, requests that should go through it are answered with 503
//! or go through the one before, and nobody else notices.

use super::{answers, bed::Bed, served, world};
use kinds::{Object, kind};
use model::ObjectRef;
use pipeline::{
    Settings,
    settings::{Packing, Scripts},
};
use serde_json::{Value, json};
use testbed::{Backend, Client};
use world::{ingress, service};

/// The port of the Listener.
const PORT: u16 = 8088;
/// Keeps requests for one path away.
const GOOD: &str = "function envoy_on_request(handle) \
    if handle:headers():get(':path') == '/kept/' then handle:respond({[':status'] = '403'}, '') end end";
/// Does not compile.
const BAD: &str = "function envoy_on_request(handle";

fn of(kind: kinds::Kind, namespace: &str, name: &str, spec: &Value) -> Object {
    world::object(kind, &json!({ "metadata": { "namespace": namespace, "name": name }, "spec": spec }))
}

fn module(script: &str) -> Object {
    of(kind::MODULE, "projectsesame", "ambassador", &json!({ "config": { "lua_scripts": script } }))
}

async fn a_script_that_is_refused(packing: Packing) {
    let backend = Backend::start("web").await.unwrap();
    let mut settings = Settings { packing, ..Settings::default() };
    settings.emissary.scripts = Scripts::Run;
    let mut bed = Bed::with(settings).await;
    let binding = json!({ "namespace": { "from": "ALL" } });
    let listener = json!({ "port": PORT, "protocol": "HTTP", "securityModel": "XFP", "hostBinding": binding });
    let host = json!({ "hostname": "a.example.com", "requestPolicy": { "insecure": { "action": "Route" } } });
    bed.put([
        of(kind::LISTENER, "default", "http", &listener),
        of(kind::HOST, "default", "a", &host),
        of(kind::MAPPING, "default", "web", &json!({ "hostname": "*", "prefix": "/", "service": "web" })),
        service("web", backend.ip()),
        ingress("beside", "beside.example.com", "/", "web"),
    ]);
    bed.publish();
    let envoy = bed.envoy("first").await;
    let (mappings, beside) = (Client::new((bed.http().ip(), PORT).into()), Client::new(bed.http()));
    served(&mappings, "a.example.com", "/kept/").await;
    let blamed = [ObjectRef::new(kind::MODULE, "projectsesame", "ambassador")].into();

    // Nothing passes without the script that should see it.
    bed.put([module(BAD)]);
    bed.publish();
    bed.until("the Module is blamed", |bed| bed.refused() == blamed).await;
    bed.settled().await;
    answers(&mappings, "a.example.com", "/", 503).await;
    served(&beside, "beside.example.com", "/").await;
    bed.pipeline.self_check().unwrap();

    bed.put([module(GOOD)]);
    bed.publish();
    served(&mappings, "a.example.com", "/").await;
    answers(&mappings, "a.example.com", "/kept/", 403).await;
    bed.until("nobody is blamed", |bed| bed.refused().is_empty()).await;

    // A proxy that has a script keeps it; one that comes meanwhile has none.
    bed.put([module(BAD)]);
    bed.publish();
    bed.until("the Module is blamed", |bed| bed.refused() == blamed).await;
    bed.settled().await;
    served(&mappings, "a.example.com", "/").await;
    answers(&mappings, "a.example.com", "/kept/", 403).await;
    envoy.kill().await.unwrap();
    let _fresh = bed.envoy("second").await;
    bed.settled().await;
    answers(&mappings, "a.example.com", "/", 503).await;
    served(&beside, "beside.example.com", "/").await;

    // Without a script all is as before.
    bed.pipeline.put(&module(BAD).key(), None);
    bed.publish();
    served(&mappings, "a.example.com", "/kept/").await;
    bed.until("nobody is blamed", |bed| bed.refused().is_empty() && bed.withheld.is_empty()).await;
    bed.pipeline.self_check().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn in_scopes_a_script_that_is_refused_closes_what_goes_through_it() {
    a_script_that_is_refused(Packing::Scoped).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_table_a_script_that_is_refused_closes_what_goes_through_it() {
    a_script_that_is_refused(Packing::Plain).await;
}
