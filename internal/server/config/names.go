package config

import "strings"

// admissionPlugins are the names of the admission plugins, in the order in which they run. TestNames compares them with
// the parts.
const admissionPlugins = `
	NamespaceLifecycle LimitRanger ServiceAccount NodeRestriction TaintNodesByCondition PodSecurity Priority
	DefaultTolerationSeconds DefaultStorageClass StorageObjectInUseProtection PodGroupProtection
	PersistentVolumeClaimResize RuntimeClass CertificateApproval CertificateSigning ClusterTrustBundleAttest
	CertificateSubjectRestriction DefaultIngressClass PodTopologyLabels
	NodeDeclaredFeatureValidator PodResizeValidator MutatingAdmissionPolicy MutatingAdmissionWebhook
	ValidatingAdmissionPolicy ValidatingAdmissionWebhook ResourceQuota`

// AdmissionPlugins returns the valid names for Admission.Disabled, which are kube-apiserver's, in the order in
// which the plugins run.
func AdmissionPlugins() []string { return strings.Fields(admissionPlugins) }

// controllerNames are the names of the controllers of the core and of parts, sorted. TestNames compares them with the
// parts.
const controllerNames = `
	bootstrap-signer-controller
	certificatesigningrequest-approving-controller
	certificatesigningrequest-cleaner-controller
	certificatesigningrequest-signing-controller
	clusterrole-aggregation-controller
	cronjob-controller
	daemonset-controller
	deployment-controller
	disruption-controller
	endpoints-controller
	endpointslice-controller
	endpointslice-mirroring-controller
	ephemeral-volume-controller
	garbage-collector-controller
	horizontal-pod-autoscaler-controller
	job-controller
	kube-apiserver-serving-clustertrustbundle-publisher-controller
	namespace-controller
	node-lifecycle-controller
	persistentvolume-binder-controller
	persistentvolume-protection-controller
	persistentvolumeclaim-protection-controller
	pod-garbage-collector-controller
	podcertificaterequest-cleaner-controller
	podgroup-protection-controller
	replicaset-controller
	replicationcontroller-controller
	resourcequota-controller
	root-ca-certificate-publisher-controller
	service-cidr-controller
	serviceaccount-controller
	serviceaccount-token-controller
	simulated-nodes
	simulated-pods
	simulated-provisioner
	simulated-scheduler
	simulated-stages
	statefulset-controller
	storage-version-migrator-controller
	storageversion-garbage-collector-controller
	taint-eviction-controller
	token-cleaner-controller
	ttl-after-finished-controller
	validatingadmissionpolicy-status-controller
	volumeattributesclass-protection-controller`

// ControllerNames returns the valid names for Controllers.Enabled, sorted.
func ControllerNames() []string { return strings.Fields(controllerNames) }
