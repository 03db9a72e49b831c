package oraclebuiltins

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/apiserverinternal/storageversion"
	"k8s.io/kubernetes/pkg/registry/apps/controllerrevision"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/certificates/certificates"
	"k8s.io/kubernetes/pkg/registry/certificates/clustertrustbundle"
	"k8s.io/kubernetes/pkg/registry/certificates/podcertificaterequest"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/coordination/leasecandidate"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/endpoint"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/flowschema"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/prioritylevelconfiguration"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/ingressclass"
	"k8s.io/kubernetes/pkg/registry/networking/ipaddress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/networking/servicecidr"
	"k8s.io/kubernetes/pkg/registry/node/runtimeclass"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/resource/deviceclass"
	"k8s.io/kubernetes/pkg/registry/resource/devicetaintrule"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaimtemplate"
	"k8s.io/kubernetes/pkg/registry/resource/resourcepoolstatusrequest"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"
	"k8s.io/kubernetes/pkg/registry/scheduling/podgroup"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/scheduling/workload"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattributesclass"
	"k8s.io/utils/clock"
)

// strategy is how Kubernetes prepares and judges writes of a kind.
type strategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
}

// strategies are Kubernetes' own, by kind.
var strategies = map[string]strategy{
	"MutatingWebhookConfiguration":   mutatingwebhookconfiguration.Strategy,
	"ValidatingWebhookConfiguration": validatingwebhookconfiguration.Strategy,
	"ControllerRevision":             controllerrevision.Strategy, "DaemonSet": daemonset.Strategy,
	"Deployment": deployment.Strategy,
	"ReplicaSet": replicaset.Strategy, "StatefulSet": statefulset.Strategy,
	"HorizontalPodAutoscaler": horizontalpodautoscaler.Strategy,
	"CronJob":                 cronjob.Strategy, "Job": job.Strategy, "Lease": lease.Strategy,
	"LeaseCandidate": leasecandidate.Strategy, "ConfigMap": configmap.Strategy, "Endpoints": endpoint.Strategy,
	"LimitRange": limitrange.Strategy, "Namespace": namespace.Strategy, "Node": node.Strategy,
	"PersistentVolume":      persistentvolume.Strategy,
	"PersistentVolumeClaim": persistentvolumeclaim.Strategy, "Pod": pod.Strategy, "PodTemplate": podtemplate.Strategy,
	"ReplicationController": replicationcontroller.Strategy, "ResourceQuota": resourcequota.Strategy,
	"Secret":  secret.Strategy,
	"Service": service.Strategy, "ServiceAccount": serviceaccount.Strategy, "EndpointSlice": endpointslice.Strategy,
	"Ingress":      ingress.Strategy,
	"IngressClass": ingressclass.Strategy, "IPAddress": ipaddress.Strategy, "NetworkPolicy": networkpolicy.Strategy,
	"ServiceCIDR":  servicecidr.Strategy,
	"RuntimeClass": runtimeclass.Strategy, "PodDisruptionBudget": poddisruptionbudget.Strategy,
	"ClusterRole":        clusterrole.Strategy,
	"ClusterRoleBinding": clusterrolebinding.Strategy, "Role": role.Strategy, "RoleBinding": rolebinding.Strategy,
	"PriorityClass": priorityclass.Strategy,
	"CSIDriver":     csidriver.Strategy, "CSINode": csinode.Strategy, "CSIStorageCapacity": csistoragecapacity.Strategy,
	"StorageClass": storageclass.Strategy, "VolumeAttributesClass": volumeattributesclass.Strategy,
	"VolumeAttachment": volumeattachment.Strategy, "CertificateSigningRequest": certificates.Strategy,
	"ClusterTrustBundle": clustertrustbundle.Strategy, "PodCertificateRequest": podRequests,
	"FlowSchema": flowschema.Strategy, "PriorityLevelConfiguration": prioritylevelconfiguration.Strategy,
	"DeviceClass": deviceclass.Strategy, "DeviceTaintRule": devicetaintrule.Strategy, "ResourceClaim": claims,
	"ResourceClaimTemplate": resourceclaimtemplate.NewStrategy(namespaces),
	"ResourceSlice":         resourceslice.Strategy, "ResourcePoolStatusRequest": resourcepoolstatusrequest.Strategy,
	"StorageVersion": storageversion.Strategy, "PodGroup": podGroups, "Workload": workload.Strategy,
}

var podGroups = podgroup.NewStrategy()

var podRequests = podcertificaterequest.NewStrategy()

// namespaces has one namespace, with no labels that permit anything.
var namespaces = fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "b"}}).CoreV1().Namespaces()

var claims = resourceclaim.NewStrategy(namespaces, authorizerfactory.NewAlwaysAllowAuthorizer())

// parts are the strategies of subresources, by kind and name.
var parts = map[string]rest.RESTUpdateStrategy{
	"DaemonSet/status": daemonset.StatusStrategy, "Deployment/status": deployment.StatusStrategy,
	"ReplicaSet/status":              replicaset.StatusStrategy,
	"StatefulSet/status":             statefulset.StatusStrategy,
	"HorizontalPodAutoscaler/status": horizontalpodautoscaler.StatusStrategy,
	"CronJob/status":                 cronjob.StatusStrategy, "Job/status": job.StatusStrategy,
	"Node/status":                  node.StatusStrategy,
	"PersistentVolume/status":      persistentvolume.StatusStrategy,
	"PersistentVolumeClaim/status": persistentvolumeclaim.StatusStrategy,
	"Pod/status":                   pod.StatusStrategy, "Pod/ephemeralcontainers": pod.EphemeralContainersStrategy,
	"Pod/resize":                   pod.ResizeStrategy,
	"ReplicationController/status": replicationcontroller.StatusStrategy,
	"ResourceQuota/status":         resourcequota.StatusStrategy,
	"Service/status":               service.StatusStrategy, "Ingress/status": ingress.StatusStrategy,
	"ServiceCIDR/status":         servicecidr.StatusStrategy,
	"PodDisruptionBudget/status": poddisruptionbudget.StatusStrategy, "Namespace/status": namespace.StatusStrategy,
	"VolumeAttachment/status":          volumeattachment.StatusStrategy,
	"CertificateSigningRequest/status": certificates.StatusStrategy,
	"DeviceTaintRule/status":           devicetaintrule.StatusStrategy,
	"PodCertificateRequest/status": podcertificaterequest.NewStatusStrategy(podRequests,
		authorizerfactory.NewAlwaysAllowAuthorizer(), clock.RealClock{}),
	"CertificateSigningRequest/approval": certificates.ApprovalStrategy, "FlowSchema/status": flowschema.StatusStrategy,
	"PriorityLevelConfiguration/status": prioritylevelconfiguration.StatusStrategy,
	"ResourceClaim/status":              resourceclaim.NewStatusStrategy(claims),
	"ResourcePoolStatusRequest/status":  resourcepoolstatusrequest.StatusStrategy,
	"StorageVersion/status":             storageversion.StatusStrategy,
	"PodGroup/status":                   podgroup.NewStatusStrategy(podGroups),
}
