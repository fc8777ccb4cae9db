//! What `kubectl explain` prints: the descriptions that the API server publishes (OpenAPI v3) for our CRDs, and the command itself.

use std::time::Duration;

use serde_json::Value;
use testbed::{ApiServer, eventually};
use tokio::process::Command;

use crate::page::root;

const LIMIT: Duration = Duration::from_secs(60);

/// The CRDs: the file in `deploy/crds`, the path of one of their versions, the name of the schema there.
const CRDS: [(&str, &str, &str); 5] = [
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
    (
        "contourconfigurations.projectcontour.io.yaml",
        "apis/projectcontour.io/v1alpha1",
        "io.projectcontour.v1alpha1.ContourConfiguration",
    ),
    ("mappings.getambassador.io.yaml", "apis/getambassador.io/v3alpha1", "io.getambassador.v3alpha1.Mapping"),
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
        let version = path.rsplit_once('/').unwrap().1;
        let versions = crd["spec"]["versions"].as_array().unwrap();
        let ours = &versions.iter().find(|it| it["name"] == version).unwrap()["schema"]["openAPIV3Schema"];
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
    explain(&server).await;
    fields
}

/// Runs the real command on a field, and looks for the description of the field and of each field below it.
async fn explain(server: &ApiServer) {
    let path = ["routes", "timeoutPolicy"];
    let output = Command::new(parts::program("kubectl").unwrap())
        .args(["explain", &format!("httpproxy.spec.{}", path.join("."))])
        .env("KUBECONFIG", server.kubeconfig().unwrap())
        .output();
    let output = output.await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = words(&String::from_utf8(output.stdout).unwrap());
    let text = std::fs::read_to_string(root().join("deploy/crds").join(CRDS[0].0)).unwrap();
    let crd: Value = serde_saphyr::from_str(&text).unwrap();
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let policy = &spec["properties"][path[0]]["items"]["properties"][path[1]];
    let fields = policy["properties"].as_object().unwrap();
    assert!(fields.len() > 2, "{policy}");
    for (name, field) in fields.iter().chain([(&path[1].to_owned(), policy)]) {
        let description = words(field["description"].as_str().unwrap());
        assert!(printed.contains(&description), "{name}: no `{description}` in\n{printed}");
    }
}

/// The words of a text, whichever lines they are on.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
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
