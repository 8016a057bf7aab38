{{- define "corelane.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/* Name of all objects of a release; "corelane" alone when the release is called so. */}}
{{- define "corelane.fullname" -}}
{{- $name := include "corelane.name" . }}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) }}
{{- .Values.fullnameOverride | default $full | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/* Whom the operator is for the API server. The admission policy for the operator's account names it, too. */}}
{{- define "corelane.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default (include "corelane.fullname" .) }}
{{- else }}
{{- required "serviceAccount.create: false takes the name of the account that is there: set serviceAccount.name" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "corelane.selectorLabels" -}}
app.kubernetes.io/name: {{ include "corelane.name" . }}
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

{{/* What the values add to the operator's environment. What the chart sets itself has a value of its own. */}}
{{- define "corelane.extraEnv" -}}
{{- range .Values.extraEnv }}
{{- if hasPrefix "CORELANE_" .name }}{{ fail (printf "extraEnv: the chart sets %s itself; README.md names the value for it" .name) }}{{ end }}
{{- end }}
{{- toYaml .Values.extraEnv }}
{{- end }}

{{/* A constraint that selects no pods of its own speaks of the operator's. */}}
{{- define "corelane.topologySpreadConstraints" -}}
{{- $ours := dict "matchLabels" (include "corelane.selectorLabels" . | fromYaml) }}
{{- $constraints := list }}
{{- range .Values.topologySpreadConstraints }}
{{- $selector := .labelSelector | default $ours }}
{{- $constraints = append $constraints (set (omit . "labelSelector") "labelSelector" $selector) }}
{{- end }}
{{- toYaml $constraints }}
{{- end }}

{{/* Which RenderService a pod is of, and which revision of it: labels by which dashboards and alerts join. */}}
{{- define "corelane.podRelabelings" -}}
- { sourceLabels: [__meta_kubernetes_pod_label_corelane_dev_renderservice], targetLabel: renderservice }
- { sourceLabels: [__meta_kubernetes_pod_label_pod_template_hash], targetLabel: revision }
{{- end }}

{{/* Whoever may make a pod may write anything on its page: of its own series alone (operator/gen/alerts/scraped.ts). */}}
{{- define "corelane.podMetricRelabelings" -}}
- { sourceLabels: [__name__], regex: "corelane_(workers|(cache_requests|canary|peers|queue|requests?|span_records|sticky|worker)_.+)", action: keep }
{{- end }}
