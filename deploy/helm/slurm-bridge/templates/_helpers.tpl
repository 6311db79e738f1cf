{{/* The name of the objects: the release's, with the chart's unless it has it. */}}
{{- define "slurm-bridge.fullname" -}}
{{- $chart := .Values.nameOverride | default .Chart.Name }}
{{- $both := contains $chart .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $chart) }}
{{- .Values.fullnameOverride | default ($both | trunc 40 | trimSuffix "-") }}
{{- end }}

{{- define "slurm-bridge.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
{{- end }}

{{/* The daemon's configuration, with what follows from the release where it is left out. The APIs of config.web are enabled in
the daemon's environment, because the webhook and the agents read this configuration, too. */}}
{{- define "slurm-bridge.config" -}}
{{- $name := include "slurm-bridge.fullname" . }}
{{- $lease := dict "namespace" .Release.Namespace "name" $name }}
{{- $accounts := list (printf "system:serviceaccount:%s:%s" .Release.Namespace $name) }}
{{- $config := mergeOverwrite (dict "leader_election" $lease "admission" (dict "accounts" $accounts)) (deepCopy .Values.config) }}
{{- range $api := list "submission" "administration" }}
{{- with dig "web" $api dict $config }}{{ $_ := unset . "enabled" }}{{ end }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{/* Not empty where the Lease is part of the release: no daemon or other release has made it. */}}
{{- define "slurm-bridge.ownsLease" -}}
{{- $lease := (include "slurm-bridge.config" . | fromYaml).leader_election }}
{{- $found := lookup "coordination.k8s.io/v1" "Lease" $lease.namespace $lease.name }}
{{- if or (not $found) (eq .Release.Name (dig "metadata" "annotations" "meta.helm.sh/release-name" "" $found)) }}true{{ end }}
{{- end }}

{{/* The names of the hooks in the configuration, as JSON. */}}
{{- define "slurm-bridge.hooks" -}}
{{- $names := list }}
{{- range .Values.config.hooks }}{{ $names = append $names .name }}{{ end }}
{{- toJson $names }}
{{- end }}

{{/* The scheduler names in the configuration, as items of a list in JSON or CEL. */}}
{{- define "slurm-bridge.schedulers" -}}
{{- range $at, $one := .Values.config.scheduler_names }}{{ if $at }}, {{ end }}{{ quote $one }}{{ end }}
{{- end }}

{{/* Which APIs of the daemon are served, so that it has a Service and a certificate, and may review tokens. */}}
{{- define "slurm-bridge.served" -}}
{{- range $api := list "submission" "administration" }}
{{- if dig "web" $api "enabled" false $.Values.config }}{{ upper $api }} {{ end }}
{{- end }}
{{- end }}

{{/* A port of the daemon: the root and the key in config.web. */}}
{{- define "slurm-bridge.port" -}}
{{- $root := index . 0 }}
{{- $key := index . 1 }}
{{- dig "web" $key nil $root.Values.config | required (printf "config.web.%s: has to be the number of a port" $key) | int }}
{{- end }}

{{/* Whether the hook kube-scheduler looks at services and controllers, as by default: see deploy/kube-scheduler. */}}
{{- define "slurm-bridge.readsControllers" -}}
{{- $readers := "SelectorSpread|ServiceAffinity|ServiceAntiAffinity|spread_|profiles|configuration" }}
{{- range .Values.config.hooks }}
{{- if eq .name "kube-scheduler" }}
{{- $options := .options | default dict }}
{{- if or (not (hasKey $options "priorities")) (regexMatch $readers (toJson $options)) }}yes{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Annotations of the daemon's pods. */}}
{{- define "slurm-bridge.podAnnotations" -}}
{{- if .Values.restartOnConfigChange }}
checksum/config: {{ include "slurm-bridge.config" . | sha256sum }}
{{- end }}
{{- with .Values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Where pods run, apart from their affinity: the root, the values, and the pods' label. */}}
{{- define "slurm-bridge.placement" -}}
{{- $root := index . 0 }}
{{- $values := index . 1 }}
{{- $label := index . 2 }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.topologySpreadConstraints }}
{{- $selector := dict "labelSelector" (dict "matchLabels" (dict "app.kubernetes.io/name" $label)) }}
topologySpreadConstraints:
  {{- range . }}
  - {{- merge (deepCopy .) $selector | toYaml | nindent 4 }}
  {{- end }}
{{- end }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The terms that select managed namespaces. */}}
{{- define "slurm-bridge.managed" -}}
{{- $names := .Values.config.managed_namespaces }}
{{- $selector := .Values.config.managed_namespace_selector }}
{{- if and $names $selector }}
{{- fail "webhook.enabled: set config.managed_namespaces or config.managed_namespace_selector, not both: a webhook cannot select namespaces by either" }}
{{- else if $names }}
- key: kubernetes.io/metadata.name
  operator: In
  values: {{ toJson $names }}
{{- else if $selector }}
{{- include "slurm-bridge.terms" (list $selector false) }}
{{- else }}
# No namespace is managed.
- key: kubernetes.io/metadata.name
  operator: DoesNotExist
{{- end }}
{{- end }}

{{/* The terms that leave them out. Several terms have no opposite: what they select is then reviewed twice. */}}
{{- define "slurm-bridge.unmanaged" -}}
{{- $selector := .Values.config.managed_namespace_selector }}
{{- with .Values.config.managed_namespaces }}
- key: kubernetes.io/metadata.name
  operator: NotIn
  values: {{ toJson . }}
{{- end }}
{{- if and $selector (eq 1 (len (include "slurm-bridge.terms" (list $selector false) | fromYamlArray))) }}
{{- include "slurm-bridge.terms" (list $selector true) }}
{{- end }}
{{- end }}

{{/* A selector of labels as a list of terms, or of their opposites: the text, and whether it is the opposite. */}}
{{- define "slurm-bridge.terms" -}}
{{- $opposite := index . 1 }}
{{- $opposites := dict "In" "NotIn" "NotIn" "In" "Exists" "DoesNotExist" "DoesNotExist" "Exists" }}
{{- $forms := list
      (list "In" `^([^\s!=(]+)\s+in\s*\((.*)\)$`)
      (list "NotIn" `^([^\s!=(]+)\s+notin\s*\((.*)\)$`)
      (list "NotIn" `^([^\s!=(]+)\s*!=\s*(\S*)$`)
      (list "In" `^([^\s!=(]+)\s*={1,2}\s*(\S*)$`)
      (list "DoesNotExist" `^!\s*(\S+)()$`)
      (list "Exists" `^([^\s!=(]+)()$`) }}
{{- $terms := regexFindAll `[^,(]+(\([^)]*\))?` (index . 0) -1 }}
{{- if ne (join "," $terms) (index . 0) }}
{{- fail (printf "config.managed_namespace_selector: %s is no label selector" (index . 0 | trunc 100 | quote)) }}
{{- end }}
{{- range $terms }}
{{- $term := trim . }}
{{- $found := false }}
{{- range $forms }}
{{- $operator := index . 0 }}
{{- if and (not $found) (regexMatch (index . 1) $term) }}
{{- $found = true }}
- key: {{ regexReplaceAll (index . 1) $term "${1}" | quote }}
  operator: {{ $opposite | ternary (get $opposites $operator) $operator }}
  {{- if has $operator (list "In" "NotIn") }}
  values:
    {{- range regexReplaceAll (index . 1) $term "${2}" | splitList "," }}
    - {{ trim . | quote }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end }}
{{- if not $found }}
{{- fail (printf "config.managed_namespace_selector: %s is no term of a label selector" ($term | trunc 100 | quote)) }}
{{- end }}
{{- end }}
{{- end }}

{{/* The certificate authority in the webhook configurations; with cert-manager nothing, for it writes it itself. */}}
{{- define "slurm-bridge.caBundle" -}}
{{- $tls := .Values.webhook.tls }}
{{- if eq $tls.mode "secret" }}
caBundle: {{ required "webhook.tls.caBundle: has to be set with webhook.tls.mode secret" $tls.caBundle }}
{{- else if eq $tls.mode "selfSigned" }}
{{- $name := include "slurm-bridge.fullname" . }}
caBundle: {{ index (include "slurm-bridge.keyPair" (list . "webhook" $tls (list (printf "%s-webhook" $name))) | fromJson) "ca.crt" }}
{{- end }}
{{- end }}

{{/* The certificate of Services: the root, the end of the Secret's name, the values, and the names of the Services. */}}
{{- define "slurm-bridge.certificate" -}}
{{- $root := index . 0 }}
{{- $end := index . 1 }}
{{- $tls := index . 2 }}
{{- $name := include "slurm-bridge.fullname" $root }}
{{- $secret := $tls.secretName | default (printf "%s-%s" $name $end) }}
{{- $hosts := include "slurm-bridge.hosts" . | fromJsonArray }}
{{- if eq $tls.mode "selfSigned" }}
---
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata:
  name: {{ $secret }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    app.kubernetes.io/name: {{ $name }}
  annotations:
    # An upgrade keeps the certificate while its names are these.
    slurm-bridge/hosts: {{ join "," $hosts | quote }}
data:
  {{- include "slurm-bridge.keyPair" . | fromJson | toYaml | nindent 2 }}
{{- else if eq $tls.mode "certManager" }}
{{- if not $tls.issuerRef }}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  name: {{ $name }}-{{ $end }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    app.kubernetes.io/name: {{ $name }}
spec:
  selfSigned: {}
{{- end }}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ $name }}-{{ $end }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    app.kubernetes.io/name: {{ $name }}
spec:
  secretName: {{ $secret }}
  dnsNames: {{ toJson $hosts }}
  issuerRef:
    {{- $tls.issuerRef | default (dict "kind" "Issuer" "name" (printf "%s-%s" $name $end)) | toYaml | nindent 4 }}
{{- end }}
{{- end }}

{{/* The names in a certificate, as JSON. */}}
{{- define "slurm-bridge.hosts" -}}
{{- $namespace := (index . 0).Release.Namespace }}
{{- $hosts := list }}
{{- range index . 3 }}
{{- $hosts = concat $hosts (list (printf "%s.%s.svc" . $namespace) (printf "%s.%s.svc.cluster.local" . $namespace)) }}
{{- end }}
{{- toJson $hosts }}
{{- end }}

{{/* The data of a Secret of the chart, as JSON: the one that exists, else a new one, which is the same for all templates. */}}
{{- define "slurm-bridge.keyPair" -}}
{{- $root := index . 0 }}
{{- $tls := index . 2 }}
{{- $name := include "slurm-bridge.fullname" $root }}
{{- $hosts := include "slurm-bridge.hosts" . | fromJsonArray }}
{{- $secret := $tls.secretName | default (printf "%s-%s" $name (index . 1)) }}
{{- if not (hasKey $tls "made") }}
{{- $found := lookup "v1" "Secret" $root.Release.Namespace $secret }}
{{- if and $found (eq (join "," $hosts) (dig "metadata" "annotations" "slurm-bridge/hosts" "" $found)) }}
{{- $_ := set $tls "made" $found.data }}
{{- else }}
{{- $authority := genCAWithKey (printf "%s-ca" $secret) 3650 (genPrivateKey "ecdsa") }}
{{- $pair := genSignedCertWithKey (first $hosts | trunc 64) nil $hosts 3650 $authority (genPrivateKey "ecdsa") }}
{{- $_ := set $tls "made" (dict "ca.crt" (b64enc $authority.Cert) "tls.crt" (b64enc $pair.Cert) "tls.key" (b64enc $pair.Key)) }}
{{- end }}
{{- end }}
{{- toJson $tls.made }}
{{- end }}
