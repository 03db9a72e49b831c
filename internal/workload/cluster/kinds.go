package cluster

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds of what kubelets have.
var (
	PodKind  = schema.GroupKind{Kind: "Pod"}
	NodeKind = schema.GroupKind{Kind: "Node"}
)

// The kinds that simulated components read and write.
var (
	Pods = Kind[corev1.Pod, *corev1.Pod]{
		Version: "v1", Resource: "pods", Kind: "Pod", Prefix: "pods",
	}
	Nodes = Kind[corev1.Node, *corev1.Node]{
		Version: "v1", Resource: "nodes", Kind: "Node", Prefix: "minions",
	}
	Namespaces = Kind[corev1.Namespace, *corev1.Namespace]{
		Version: "v1", Resource: "namespaces", Kind: "Namespace", Prefix: "namespaces",
	}
	Services = Kind[corev1.Service, *corev1.Service]{
		Version: "v1", Resource: "services", Kind: "Service", Prefix: "services/specs",
	}
	//lint:ignore SA1019 Endpoints are made and served as ever
	Endpoints = Kind[corev1.Endpoints, *corev1.Endpoints]{
		Version: "v1", Resource: "endpoints", Kind: "Endpoints", Prefix: "services/endpoints",
	}
	ReplicationControllers = Kind[corev1.ReplicationController, *corev1.ReplicationController]{
		Version: "v1", Resource: "replicationcontrollers", Kind: "ReplicationController", Prefix: "controllers",
	}
	PersistentVolumeClaims = Kind[corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaim]{
		Version: "v1", Resource: "persistentvolumeclaims", Kind: "PersistentVolumeClaim",
		Prefix: "persistentvolumeclaims",
	}
	PersistentVolumes = Kind[corev1.PersistentVolume, *corev1.PersistentVolume]{
		Version: "v1", Resource: "persistentvolumes", Kind: "PersistentVolume", Prefix: "persistentvolumes",
	}
	Deployments = Kind[appsv1.Deployment, *appsv1.Deployment]{
		Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Prefix: "deployments",
	}
	ReplicaSets = Kind[appsv1.ReplicaSet, *appsv1.ReplicaSet]{
		Group: "apps", Version: "v1", Resource: "replicasets", Kind: "ReplicaSet", Prefix: "replicasets",
	}
	StatefulSets = Kind[appsv1.StatefulSet, *appsv1.StatefulSet]{
		Group: "apps", Version: "v1", Resource: "statefulsets", Kind: "StatefulSet", Prefix: "statefulsets",
	}
	DaemonSets = Kind[appsv1.DaemonSet, *appsv1.DaemonSet]{
		Group: "apps", Version: "v1", Resource: "daemonsets", Kind: "DaemonSet", Prefix: "daemonsets",
	}
	ControllerRevisions = Kind[appsv1.ControllerRevision, *appsv1.ControllerRevision]{
		Group: "apps", Version: "v1", Resource: "controllerrevisions", Kind: "ControllerRevision",
		Prefix: "controllerrevisions",
	}
	Jobs = Kind[batchv1.Job, *batchv1.Job]{
		Group: "batch", Version: "v1", Resource: "jobs", Kind: "Job", Prefix: "jobs",
	}
	CronJobs = Kind[batchv1.CronJob, *batchv1.CronJob]{
		Group: "batch", Version: "v1", Resource: "cronjobs", Kind: "CronJob", Prefix: "cronjobs",
	}
	EndpointSlices = Kind[discoveryv1.EndpointSlice, *discoveryv1.EndpointSlice]{
		Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices", Kind: "EndpointSlice",
		Prefix: "endpointslices",
	}
	PodDisruptionBudgets = Kind[policyv1.PodDisruptionBudget, *policyv1.PodDisruptionBudget]{
		Group: "policy", Version: "v1", Resource: "poddisruptionbudgets", Kind: "PodDisruptionBudget",
		Prefix: "poddisruptionbudgets",
	}
	HorizontalPodAutoscalers = Kind[autoscalingv2.HorizontalPodAutoscaler, *autoscalingv2.HorizontalPodAutoscaler]{
		Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler",
		Prefix: "horizontalpodautoscalers",
	}
	Leases = Kind[coordinationv1.Lease, *coordinationv1.Lease]{
		Group: "coordination.k8s.io", Version: "v1", Resource: "leases", Kind: "Lease", Prefix: "leases",
	}
	PriorityClasses = Kind[schedulingv1.PriorityClass, *schedulingv1.PriorityClass]{
		Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses", Kind: "PriorityClass",
		Prefix: "priorityclasses",
	}
	StorageClasses = Kind[storagev1.StorageClass, *storagev1.StorageClass]{
		Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses", Kind: "StorageClass",
		Prefix: "storageclasses",
	}
	VolumeAttributesClasses = Kind[storagev1.VolumeAttributesClass, *storagev1.VolumeAttributesClass]{
		Group: "storage.k8s.io", Version: "v1", Resource: "volumeattributesclasses", Kind: "VolumeAttributesClass",
		Prefix: "volumeattributesclasses",
	}
	CSINodes = Kind[storagev1.CSINode, *storagev1.CSINode]{
		Group: "storage.k8s.io", Version: "v1", Resource: "csinodes", Kind: "CSINode", Prefix: "csinodes",
	}
	VolumeAttachments = Kind[storagev1.VolumeAttachment, *storagev1.VolumeAttachment]{
		Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments", Kind: "VolumeAttachment",
		Prefix: "volumeattachments",
	}
)
