//! The Helm chart: its templates are the same objects with the settings left open.

use std::collections::BTreeMap;

use manifest::Defaults;
use serde_json::Value;

use super::{HEAD, parts, settings};

/// Helpers that templates include: the same as the `Helper` pieces say in plain YAML.
const HELPERS: &str = r#"{{- /* The name of what is outside of the namespace of the installation. */ -}}
{{- define "sesame.name" -}}
{{- if eq .Release.Namespace "projectsesame" -}}sesame{{- else -}}sesame-{{ .Release.Namespace }}{{- end -}}
{{- end -}}

{{- /* The Secrets that are read by name, as a flag takes them. */ -}}
{{- define "sesame.namedSecrets" -}}
{{- $all := list -}}
{{- range $namespace, $names := .Values.rbac.secrets -}}
{{- range $names -}}{{- $all = append $all (printf "%s/%s" $namespace .) -}}{{- end -}}
{{- end -}}
{{- join "," $all -}}
{{- end -}}
"#;

const NOTES: &str = r#"Sesame {{ .Chart.AppVersion }} is installed in namespace {{ .Release.Namespace }}.
{{- if eq .Values.envoy.kind "none" }}
Every Gateway of class {{ .Values.gatewayClass.name }} gets proxies of its own.
{{- else }}
The proxies: kubectl --namespace {{ .Release.Namespace }} get service,pods -l app=envoy
{{- end }}
"#;

/// Every file of the chart, with its text.
pub fn files(defaults: &Value) -> BTreeMap<String, String> {
    let version = env!("CARGO_PKG_VERSION");
    let chart = format!(
        "{HEAD}apiVersion: v2\nname: sesame\ndescription: Ingress and Gateway API for Kubernetes, served by fleets of Envoy\n\
         type: application\nversion: {version}\nappVersion: v{version}\nkubeVersion: \">=1.31.0-0\"\n"
    );
    let mut schema = serde_json::to_string_pretty(&settings::schema()).unwrap_or_default();
    schema.push('\n');
    let mut files = BTreeMap::from([
        ("Chart.yaml".to_owned(), chart),
        ("values.yaml".to_owned(), settings::values_yaml()),
        ("values.schema.json".to_owned(), schema),
        ("README.md".to_owned(), settings::page()),
        ("templates/_helpers.tpl".to_owned(), HELPERS.to_owned()),
        ("templates/NOTES.txt".to_owned(), NOTES.to_owned()),
    ]);
    for part in parts() {
        let text = manifest::template(&part.documents, Defaults(defaults));
        files.insert(format!("templates/{}", part.file), format!("{HEAD}{text}"));
    }
    files
}
