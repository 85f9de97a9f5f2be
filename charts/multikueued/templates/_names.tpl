{{/* Services have names of 63 characters at most, without dots; a release's may have 53, with dots. */}}

{{/* The webhook's Service and Secret. */}}
{{- define "multikueued.webhook" -}}
{{ .Release.Name | replace "." "-" | trunc 43 | trimSuffix "-" }}-multikueued-webhook
{{- end }}

{{/* The Service of the metrics. */}}
{{- define "multikueued.metrics" -}}
{{ .Release.Name | replace "." "-" | trunc 43 | trimSuffix "-" }}-multikueued-metrics
{{- end }}

{{/* API servers call webhooks in the order of these names: this one must come after Kueue's, which begins with "kueue". */}}
{{- define "multikueued.webhookConfiguration" -}}
multikueued-{{ .Release.Name }}
{{- end }}

{{/* The API server's objects; they keep the names of the logs server, which it was. */}}
{{- define "multikueued.logs" -}}
{{ .Release.Name | replace "." "-" | trunc 46 | trimSuffix "-" }}-multikueued-logs
{{- end }}

{{/* The page's Service. */}}
{{- define "multikueued.page" -}}
{{ .Release.Name | replace "." "-" | trunc 46 | trimSuffix "-" }}-multikueued-page
{{- end }}

{{/* The pod's port that serves metrics. */}}
{{- define "multikueued.metricsPort" -}}
{{- if ((.Values.settings.serving).metrics).secure }}metrics{{ else }}http{{ end }}
{{- end }}
