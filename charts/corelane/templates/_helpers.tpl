{{/* Name of all objects of a release; "corelane" alone when the release is called so. */}}
{{- define "corelane.fullname" -}}
{{- if contains "corelane" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-corelane" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "corelane.selectorLabels" -}}
app.kubernetes.io/name: corelane
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "corelane.labels" -}}
{{ include "corelane.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: corelane
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Reference of an image: digest before tag, tag before the chart's appVersion. Takes (dict "image" ... "root" $). */}}
{{- define "corelane.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end }}
{{- end }}

{{/* Rules made from operator/src/kube/rbac.ts by "make generate". */}}
{{- define "corelane.rules" -}}
{{ .Files.Get "files/rbac-namespaced.yaml" | fromYamlArray | toYaml }}
{{- end }}

{{/* The namespaces in which the operator works, with commas between; empty: all. */}}
{{- define "corelane.namespaces" -}}
{{- if eq .Values.scope "namespace" }}{{ .Release.Namespace }}{{ end }}
{{- if eq .Values.scope "namespaces" }}
{{- if not .Values.namespaces }}{{ fail "scope: namespaces takes a list of them: set namespaces" }}{{ end }}
{{- join "," .Values.namespaces }}
{{- else if .Values.namespaces }}{{ fail "namespaces is for scope: namespaces; with another scope it would say nothing" }}{{ end }}
{{- end }}
