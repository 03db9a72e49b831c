{{- define "bowsprit.name" -}}
{{- if contains "bowsprit" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-bowsprit" (.Release.Name | trunc 40 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "bowsprit.selector" -}}
app.kubernetes.io/name: bowsprit
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "bowsprit.labels" -}}
{{ include "bowsprit.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "bowsprit.secret" -}}
{{ .Values.certificates.existingSecret | default (printf "%s-pki" (include "bowsprit.name" .)) }}
{{- end }}

{{- define "bowsprit.check" -}}
{{- if and (gt (int .Values.replicas) 1) (not .Values.etcd.servers) }}
{{- fail "replicas is more than 1, and etcd.servers is empty: the etcd inside of a server is for that server alone" }}
{{- end }}
{{- range $flag, $value := .Values.settings }}
{{- if has $flag (list "bind-address" "secure-port" "data-dir" "ephemeral" "etcd-servers" "etcd-prefix" "tls-cert-file" "tls-private-key-file" "client-ca-file" "token-auth-file") }}
{{- fail (printf "settings.%s: the chart sets this itself; see values.yaml for what it is made of" $flag) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "bowsprit.pod" -}}
metadata:
  labels:
    {{- include "bowsprit.selector" . | nindent 4 }}
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- with .Values.podAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if and .Values.topologySpread (gt (int .Values.replicas) 1) }}
  topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "bowsprit.selector" . | nindent 8 }}
  {{- end }}
  containers:
  - name: server
    image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args:
    - serve
    - --bind-address=0.0.0.0
    - --secure-port=6443
    - --advertise-address=$(POD_IP)
    - --data-dir=/data
    - --tls-cert-file=/pki/tls.crt
    - --tls-private-key-file=/pki/tls.key
    - --client-ca-file=/pki/ca.crt
    - --token-auth-file=/pki/tokens.csv
    - --service-account-key-file=/pki/sa.key
    - --service-account-signing-key-file=/pki/sa.key
    - --requestheader-client-ca-file=/pki/front-proxy-ca.crt
    - --requestheader-allowed-names=front-proxy-client
    - --proxy-client-cert-file=/pki/front-proxy-client.crt
    - --proxy-client-key-file=/pki/front-proxy-client.key
    {{- with .Values.etcd.servers }}
    - --etcd-servers={{ join "," . }}
    - --etcd-prefix={{ $.Values.etcd.prefix }}
    {{- end }}
    {{- if .Values.etcd.secretName }}
    - --etcd-cafile=/etcd/ca.crt
    - --etcd-certfile=/etcd/tls.crt
    - --etcd-keyfile=/etcd/tls.key
    {{- end }}
    {{- range $flag, $value := .Values.settings }}
    - {{ printf "--%s=%v" $flag $value | quote }}
    {{- end }}
    env:
    - name: POD_IP
      valueFrom: {fieldRef: {fieldPath: status.podIP}}
    ports:
    - {name: https, containerPort: 6443, protocol: TCP}
    # The server reads all data when it starts.
    startupProbe:
      httpGet: {path: /livez, port: https, scheme: HTTPS}
      periodSeconds: 2
      failureThreshold: 300
    livenessProbe:
      httpGet: {path: /livez, port: https, scheme: HTTPS}
      periodSeconds: 10
      timeoutSeconds: 10
      failureThreshold: 6
    readinessProbe:
      httpGet: {path: /readyz, port: https, scheme: HTTPS}
      periodSeconds: 2
      timeoutSeconds: 5
      failureThreshold: 2
    lifecycle:
      preStop: {sleep: {seconds: {{ .Values.drainSeconds }}}}
    resources: {{- toYaml .Values.resources | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
    volumeMounts:
    - {name: data, mountPath: /data}
    - {name: pki, mountPath: /pki, readOnly: true}
    {{- if .Values.etcd.secretName }}
    - {name: etcd, mountPath: /etcd, readOnly: true}
    {{- end }}
  volumes:
  - name: pki
    secret: {secretName: {{ include "bowsprit.secret" . }}, defaultMode: 0440}
  {{- if .Values.etcd.secretName }}
  - name: etcd
    secret: {secretName: {{ .Values.etcd.secretName }}, defaultMode: 0440}
  {{- end }}
  {{- if or .Values.etcd.servers (not .Values.persistence.enabled) }}
  - name: data
    emptyDir: {}
  {{- end }}
{{- end }}
