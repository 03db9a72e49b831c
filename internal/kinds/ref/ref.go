// Package ref names the built-in kinds for packages that use single kinds: group, version, resource, kind, and the
// prefix of their objects in etcd and in the view.
//
// A kind's prefix is often its resource, and sometimes not: nodes are stored below "minions". So other packages take
// the names from here instead of writing them as literals. TestRefs of package kinds compares the table with the
// kinds' definitions. The variables must not be changed.
package ref

import "github.com/bowsprit/bowsprit/internal/api/catalog"

// Names are the names of one built-in kind.
type Names struct {
	// Group is empty for the core group. Version is the preferred version.
	Group, Version string
	// Resource is the lower-case plural in URLs, Kind the name in objects.
	Resource, Kind string
	// Prefix is the prefix of the kind's keys, below the prefix of all objects and without slashes at its ends.
	Prefix string
}

// GroupResource returns the kind's key in the catalog.
func (n Names) GroupResource() catalog.GroupResource {
	return catalog.GroupResource{Group: n.Group, Resource: n.Resource}
}

// Kinds of the core group.
var (
	ConfigMaps             = Names{"", "v1", "configmaps", "ConfigMap", "configmaps"}
	Endpoints              = Names{"", "v1", "endpoints", "Endpoints", "services/endpoints"}
	Events                 = Names{"", "v1", "events", "Event", "events"}
	LimitRanges            = Names{"", "v1", "limitranges", "LimitRange", "limitranges"}
	Namespaces             = Names{"", "v1", "namespaces", "Namespace", "namespaces"}
	Nodes                  = Names{"", "v1", "nodes", "Node", "minions"}
	PersistentVolumeClaims = Names{
		"", "v1", "persistentvolumeclaims",
		"PersistentVolumeClaim", "persistentvolumeclaims",
	}
	PersistentVolumes      = Names{"", "v1", "persistentvolumes", "PersistentVolume", "persistentvolumes"}
	Pods                   = Names{"", "v1", "pods", "Pod", "pods"}
	ReplicationControllers = Names{"", "v1", "replicationcontrollers", "ReplicationController", "controllers"}
	ResourceQuotas         = Names{"", "v1", "resourcequotas", "ResourceQuota", "resourcequotas"}
	Secrets                = Names{"", "v1", "secrets", "Secret", "secrets"}
	ServiceAccounts        = Names{"", "v1", "serviceaccounts", "ServiceAccount", "serviceaccounts"}
	Services               = Names{"", "v1", "services", "Service", "services/specs"}
)

// Kinds of the group admissionregistration.k8s.io.
var (
	MutatingWebhookConfigurations = Names{
		"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations",
		"MutatingWebhookConfiguration", "mutatingwebhookconfigurations",
	}
	ValidatingWebhookConfigurations = Names{
		"admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations",
		"ValidatingWebhookConfiguration", "validatingwebhookconfigurations",
	}
	ValidatingAdmissionPolicies = Names{
		"admissionregistration.k8s.io", "v1", "validatingadmissionpolicies",
		"ValidatingAdmissionPolicy", "validatingadmissionpolicies",
	}
)

// Kinds of the group apiextensions.k8s.io.
var (
	CustomResourceDefinitions = Names{
		"apiextensions.k8s.io", "v1", "customresourcedefinitions",
		"CustomResourceDefinition", "apiextensions.k8s.io/customresourcedefinitions",
	}
)

// Kinds of the group apiregistration.k8s.io.
var (
	APIServices = Names{
		"apiregistration.k8s.io", "v1", "apiservices",
		"APIService", "apiregistration.k8s.io/apiservices",
	}
)

// Kinds of the group apps.
var (
	ControllerRevisions = Names{"apps", "v1", "controllerrevisions", "ControllerRevision", "controllerrevisions"}
	DaemonSets          = Names{"apps", "v1", "daemonsets", "DaemonSet", "daemonsets"}
	Deployments         = Names{"apps", "v1", "deployments", "Deployment", "deployments"}
	ReplicaSets         = Names{"apps", "v1", "replicasets", "ReplicaSet", "replicasets"}
	StatefulSets        = Names{"apps", "v1", "statefulsets", "StatefulSet", "statefulsets"}
)

// Kinds of the group autoscaling.
var (
	HorizontalPodAutoscalers = Names{
		"autoscaling", "v2", "horizontalpodautoscalers",
		"HorizontalPodAutoscaler", "horizontalpodautoscalers",
	}
)

// Kinds of the group batch.
var (
	CronJobs = Names{"batch", "v1", "cronjobs", "CronJob", "cronjobs"}
	Jobs     = Names{"batch", "v1", "jobs", "Job", "jobs"}
)

// Kinds of the group certificates.k8s.io.
var (
	CertificateSigningRequests = Names{
		"certificates.k8s.io", "v1", "certificatesigningrequests",
		"CertificateSigningRequest", "certificatesigningrequests",
	}
)

// Kinds of the group certificates.k8s.io.
var (
	ClusterTrustBundles = Names{
		"certificates.k8s.io", "v1", "clustertrustbundles",
		"ClusterTrustBundle", "clustertrustbundles",
	}
)

// Kinds of the group certificates.k8s.io.
var (
	PodCertificateRequests = Names{
		"certificates.k8s.io", "v1", "podcertificaterequests",
		"PodCertificateRequest", "podcertificaterequests",
	}
)

// Kinds of the group coordination.k8s.io.
var (
	Leases = Names{"coordination.k8s.io", "v1", "leases", "Lease", "leases"}
)

// Kinds of the group coordination.k8s.io.
var (
	LeaseCandidates = Names{"coordination.k8s.io", "v1beta1", "leasecandidates", "LeaseCandidate", "leasecandidates"}
)

// Kinds of the group discovery.k8s.io.
var (
	EndpointSlices = Names{"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", "endpointslices"}
)

// Kinds of the group internal.apiserver.k8s.io.
var (
	StorageVersions = Names{
		"internal.apiserver.k8s.io", "v1alpha1", "storageversions",
		"StorageVersion", "storageversions",
	}
)

// Kinds of the group networking.k8s.io.
var (
	IPAddresses  = Names{"networking.k8s.io", "v1", "ipaddresses", "IPAddress", "ipaddresses"}
	ServiceCIDRs = Names{"networking.k8s.io", "v1", "servicecidrs", "ServiceCIDR", "servicecidrs"}
)

// Kinds of the group node.k8s.io.
var (
	RuntimeClasses = Names{"node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", "runtimeclasses"}
)

// Kinds of the group policy.
var (
	PodDisruptionBudgets = Names{
		"policy", "v1", "poddisruptionbudgets",
		"PodDisruptionBudget", "poddisruptionbudgets",
	}
)

// Kinds of the group rbac.authorization.k8s.io.
var (
	ClusterRoleBindings = Names{
		"rbac.authorization.k8s.io", "v1", "clusterrolebindings",
		"ClusterRoleBinding", "clusterrolebindings",
	}
	ClusterRoles = Names{"rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", "clusterroles"}
	RoleBindings = Names{"rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", "rolebindings"}
	Roles        = Names{"rbac.authorization.k8s.io", "v1", "roles", "Role", "roles"}
)

// Kinds of the group resource.k8s.io.
var (
	DeviceClasses  = Names{"resource.k8s.io", "v1", "deviceclasses", "DeviceClass", "deviceclasses"}
	ResourceClaims = Names{"resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", "resourceclaims"}
	ResourceSlices = Names{"resource.k8s.io", "v1", "resourceslices", "ResourceSlice", "resourceslices"}
)

// Kinds of the group scheduling.k8s.io.
var (
	PriorityClasses = Names{"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", "priorityclasses"}
)

// Kinds of the group scheduling.k8s.io.
var (
	PodGroups = Names{"scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", "podgroups"}
	Workloads = Names{"scheduling.k8s.io", "v1beta1", "workloads", "Workload", "workloads"}
)

// Kinds of the group storage.k8s.io.
var (
	CSIDrivers        = Names{"storage.k8s.io", "v1", "csidrivers", "CSIDriver", "csidrivers"}
	CSINodes          = Names{"storage.k8s.io", "v1", "csinodes", "CSINode", "csinodes"}
	StorageClasses    = Names{"storage.k8s.io", "v1", "storageclasses", "StorageClass", "storageclasses"}
	VolumeAttachments = Names{
		"storage.k8s.io", "v1", "volumeattachments",
		"VolumeAttachment", "volumeattachments",
	}
	VolumeAttributesClasses = Names{
		"storage.k8s.io", "v1", "volumeattributesclasses",
		"VolumeAttributesClass", "volumeattributesclasses",
	}
)
