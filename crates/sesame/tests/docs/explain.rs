//! What `kubectl explain` prints: the descriptions that the API server publishes (OpenAPI v3) for our CRDs.

use std::time::Duration;

use serde_json::Value;
use testbed::{ApiServer, eventually};

use crate::page::root;

const LIMIT: Duration = Duration::from_secs(60);

/// The CRDs: the file in `deploy/crds`, the path of their version, the name of the schema there.
const CRDS: [(&str, &str, &str); 3] = [
    ("httpproxies.projectsesame.io.yaml", "apis/projectsesame.io/v1", "io.projectsesame.v1.HTTPProxy"),
    (
        "tlscertificatedelegations.projectsesame.io.yaml",
        "apis/projectsesame.io/v1",
        "io.projectsesame.v1.TLSCertificateDelegation",
    ),
    (
        "extensionservices.projectsesame.io.yaml",
        "apis/projectsesame.io/v1alpha1",
        "io.projectsesame.v1alpha1.ExtensionService",
    ),
];

/// Compares what a real API server publishes with the files; says how many fields there are.
pub async fn compare() -> usize {
    let server = ApiServer::start().await.unwrap();
    let folder = root().join("deploy/crds");
    server.install(CRDS.map(|(file, ..)| folder.join(file))).await.unwrap();
    let client = server.client().unwrap();
    let mut fields = 0;
    for (file, path, name) in CRDS {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let crd: Value = serde_saphyr::from_str(&text).unwrap();
        let ours = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let published = eventually(name, LIMIT, async || {
            let request = http::Request::get(format!("/openapi/v3/{path}")).body(Vec::new()).unwrap();
            let found: Value = client.request(request).await.map_err(|error| error.to_string())?;
            let schema = found["components"]["schemas"][name].clone();
            if schema.is_null() { Err("it is not there".to_owned()) } else { Ok(schema) }
        });
        let published = published.await.unwrap();
        let mut different = Vec::new();
        fields += walk(ours, &published, name, &mut different);
        assert!(different.is_empty(), "{}", different.join("\n"));
    }
    fields
}

/// Counts the fields below a schema, and names those whose descriptions differ.
fn walk(ours: &Value, published: &Value, path: &str, different: &mut Vec<String>) -> usize {
    let mut count = 0;
    for (name, field) in ours["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        // The API server has schemas of its own for these.
        if ["apiVersion", "kind", "metadata"].contains(&name.as_str()) && path.matches('.').count() == 4 {
            continue;
        }
        let found = &published["properties"][name];
        if found["description"] != field["description"] {
            different.push(format!("{path}: {} is published, not {}", found["description"], field["description"]));
        }
        count += 1 + walk(field, found, &path, different);
    }
    if let Some(items) = ours.get("items") {
        count += walk(items, &published["items"], &format!("{path}[]"), different);
    }
    count
}
