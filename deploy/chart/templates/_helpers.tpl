{{- /* The name of what is outside of the namespace of the installation. */ -}}
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
