{{/* The webhook's Service and Secret. */}}
{{- define "multikueued.webhook" -}}
{{ .Release.Name | trunc 43 | trimSuffix "-" }}-multikueued-webhook
{{- end }}

{{/* API servers call webhooks in the order of these names: this one must come after Kueue's, which begins with "kueue". */}}
{{- define "multikueued.webhookConfiguration" -}}
multikueued-{{ .Release.Name | trunc 51 | trimSuffix "-" }}
{{- end }}

{{/* The API server's objects; they keep the names of the logs server, which it was. */}}
{{- define "multikueued.logs" -}}
{{ .Release.Name | trunc 46 | trimSuffix "-" }}-multikueued-logs
{{- end }}

{{/* The page's Service. */}}
{{- define "multikueued.page" -}}
{{ .Release.Name | trunc 46 | trimSuffix "-" }}-multikueued-page
{{- end }}

{{/* The pod's port that serves metrics. */}}
{{- define "multikueued.metricsPort" -}}
{{- if ((.Values.settings.serving).metrics).secure }}metrics{{ else }}http{{ end }}
{{- end }}
