{{- define "escapement.name" -}}
{{- if contains "escapement" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-escapement" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "escapement.selector" -}}
app.kubernetes.io/name: escapement
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "escapement.labels" -}}
{{ include "escapement.selector" . }}
app.kubernetes.io/version: {{ include "escapement.tag" . | trunc 63 | trimSuffix "-" | quote }}
{{- end }}

{{- define "escapement.tag" -}}
{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "escapement.revision" -}}
{{ .Values.revision | default (printf "%06d-%s" .Release.Revision (include "escapement.tag" .)) }}
{{- end }}
