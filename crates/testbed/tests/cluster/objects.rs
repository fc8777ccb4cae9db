//! Objects for the tests of clusters.

use testbed::image::ready::TOOLS;

/// A pod of one container that runs lines of shell. `spec` and `container` are more fields of each, in YAML's flow
/// style.
pub fn pod(namespace: &str, name: &str, script: &str, spec: &str, container: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata: {{ name: {name}, namespace: {namespace} }}
spec: {{
  terminationGracePeriodSeconds: 0,
  containers: [{{ name: main, image: '{TOOLS}', command: [sh, -c, {script:?}], {container} }}],
  {spec}
}}
"
    )
}

/// Probes of all three kinds, which are content once the pod has made a file.
pub const PROBED: &str = "
  startupProbe: { exec: { command: [test, -e, /tmp/up] }, periodSeconds: 1 },
  readinessProbe: { exec: { command: [cat, /tmp/up] }, periodSeconds: 1 },
  livenessProbe: { exec: { command: [cat, /tmp/up] }, periodSeconds: 1 },
";
