{{/*
A release's name with what is behind it, as a Service's: without dots, and of 63 characters at most, where a release's may
have 53. Given a list: the release's name, and what is behind it.
*/}}
{{- define "multikueued.service" -}}
{{ index . 0 | replace "." "-" | trunc (sub 63 (len (index . 1)) | int) | trimSuffix "-" }}{{ index . 1 }}
{{- end }}

{{/* The webhook's Service and Secret. */}}
{{- define "multikueued.webhook" -}}
{{ include "multikueued.service" (list .Release.Name "-multikueued-webhook") }}
{{- end }}

{{/* The Service of the metrics. */}}
{{- define "multikueued.metrics" -}}
{{ include "multikueued.service" (list .Release.Name "-multikueued-metrics") }}
{{- end }}

{{/* API servers call webhooks in the order of these names: this one must come after Kueue's, which begins with "kueue". */}}
{{- define "multikueued.webhookConfiguration" -}}
multikueued-{{ .Release.Name }}
{{- end }}

{{/* The API server's objects; they keep the names of the logs server, which it was. */}}
{{- define "multikueued.logs" -}}
{{ include "multikueued.service" (list .Release.Name "-multikueued-logs") }}
{{- end }}

{{/* The page's Service. */}}
{{- define "multikueued.page" -}}
{{ include "multikueued.service" (list .Release.Name "-multikueued-page") }}
{{- end }}

{{/* The pod's port that serves metrics. */}}
{{- define "multikueued.metricsPort" -}}
{{- if ((.Values.settings.serving).metrics).secure }}metrics{{ else }}http{{ end }}
{{- end }}
