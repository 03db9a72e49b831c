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

	"github.com/bowsprit/bowsprit/internal/kinds/ref"
)

// The kinds of objects that have kubelets or run on them.
var (
	PodKind  = schema.GroupKind{Kind: "Pod"}
	NodeKind = schema.GroupKind{Kind: "Node"}
)

// The kinds that simulated components read and write.
var (
	Pods       = Kind[corev1.Pod, *corev1.Pod]{ref.Pods}
	Nodes      = Kind[corev1.Node, *corev1.Node]{ref.Nodes}
	Namespaces = Kind[corev1.Namespace, *corev1.Namespace]{ref.Namespaces}
	ConfigMaps = Kind[corev1.ConfigMap, *corev1.ConfigMap]{ref.ConfigMaps}
	Secrets    = Kind[corev1.Secret, *corev1.Secret]{ref.Secrets}
	Services   = Kind[corev1.Service, *corev1.Service]{ref.Services}
	//lint:ignore SA1019 Endpoints are made and served as ever
	Endpoints              = Kind[corev1.Endpoints, *corev1.Endpoints]{ref.Endpoints}
	ReplicationControllers = Kind[corev1.ReplicationController, *corev1.ReplicationController]{
		ref.ReplicationControllers,
	}
	PersistentVolumeClaims = Kind[corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaim]{
		ref.PersistentVolumeClaims,
	}
	PersistentVolumes    = Kind[corev1.PersistentVolume, *corev1.PersistentVolume]{ref.PersistentVolumes}
	Deployments          = Kind[appsv1.Deployment, *appsv1.Deployment]{ref.Deployments}
	ReplicaSets          = Kind[appsv1.ReplicaSet, *appsv1.ReplicaSet]{ref.ReplicaSets}
	StatefulSets         = Kind[appsv1.StatefulSet, *appsv1.StatefulSet]{ref.StatefulSets}
	DaemonSets           = Kind[appsv1.DaemonSet, *appsv1.DaemonSet]{ref.DaemonSets}
	ControllerRevisions  = Kind[appsv1.ControllerRevision, *appsv1.ControllerRevision]{ref.ControllerRevisions}
	Jobs                 = Kind[batchv1.Job, *batchv1.Job]{ref.Jobs}
	CronJobs             = Kind[batchv1.CronJob, *batchv1.CronJob]{ref.CronJobs}
	EndpointSlices       = Kind[discoveryv1.EndpointSlice, *discoveryv1.EndpointSlice]{ref.EndpointSlices}
	PodDisruptionBudgets = Kind[policyv1.PodDisruptionBudget, *policyv1.PodDisruptionBudget]{
		ref.PodDisruptionBudgets,
	}
	HorizontalPodAutoscalers = Kind[autoscalingv2.HorizontalPodAutoscaler, *autoscalingv2.HorizontalPodAutoscaler]{
		ref.HorizontalPodAutoscalers,
	}
	Leases                  = Kind[coordinationv1.Lease, *coordinationv1.Lease]{ref.Leases}
	PriorityClasses         = Kind[schedulingv1.PriorityClass, *schedulingv1.PriorityClass]{ref.PriorityClasses}
	StorageClasses          = Kind[storagev1.StorageClass, *storagev1.StorageClass]{ref.StorageClasses}
	VolumeAttributesClasses = Kind[storagev1.VolumeAttributesClass, *storagev1.VolumeAttributesClass]{
		ref.VolumeAttributesClasses,
	}
	CSINodes          = Kind[storagev1.CSINode, *storagev1.CSINode]{ref.CSINodes}
	VolumeAttachments = Kind[storagev1.VolumeAttachment, *storagev1.VolumeAttachment]{ref.VolumeAttachments}
)
