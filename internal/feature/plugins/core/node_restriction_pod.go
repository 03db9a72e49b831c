package core

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/authorize/node"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

// pod lets a kubelet create mirror pods, report the status of the pods on its node, and delete them.
func (n nodeLimits) pod(ctx context.Context, node string, a *admit.Attributes) error {
	switch a.Subresource {
	case "":
		switch a.Operation {
		case admit.Create:
			return n.mirrorPod(ctx, node, a)
		case admit.Delete:
			return n.onNode(ctx, node, a, "node %q can only delete pods with spec.nodeName set to itself")
		default:
			return refuse(a, "unexpected operation %q, node %q can only create and delete mirror pods", a.Operation, node)
		}
	case "status":
		if a.Operation != admit.Update {
			return refuse(a, "unexpected operation %q", a.Operation)
		}
		return podStatus(node, a)
	case "eviction":
		if a.Operation != admit.Create {
			return refuse(a, "unexpected operation %s", a.Operation)
		}
		return n.onNode(ctx, node, a, "node %s can only evict pods with spec.nodeName set to itself")
	}
	return refuse(a, "unexpected pod subresource %q, only 'status' and 'eviction' are allowed", a.Subresource)
}

// onNode rejects a write about a pod of another node, with the text otherwise.
func (n nodeLimits) onNode(ctx context.Context, node string, a *admit.Attributes, otherwise string) error {
	name := a.Name
	if name == "" && a.Operation == admit.Create { // only the eviction may have the name
		if name = nameOf(a); name == "" {
			return refuse(a, "could not determine pod from request data")
		}
	}
	pod, err := plugin.Lookup[corev1.Pod](ctx, n.view, ref.Pods.Prefix, a.Namespace, name)
	switch {
	case err != nil:
		return err
	case pod == nil:
		return apierrors.NewNotFound(corev1.Resource("pod"), name) // as in Kubernetes
	case pod.Spec.NodeName != node:
		return refuse(a, otherwise, node)
	}
	return nil
}

// mirrorPod lets a kubelet create mirror pods on its node without references to API objects, since a kubelet may read
// the objects that its pods reference.
func (n nodeLimits) mirrorPod(ctx context.Context, node string, a *admit.Attributes) error {
	pod := new(corev1.Pod)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(a.Object, pod); err != nil {
		return err
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; !mirror {
		return refuse(a, "pod does not have %q annotation, node %q can only create mirror pods",
			corev1.MirrorPodAnnotationKey, node)
	}
	if pod.Spec.NodeName != node {
		return refuse(a, "node %q can only create pods with spec.nodeName set to itself", node)
	}
	if err := n.mirrorOwner(ctx, node, a, pod); err != nil {
		return err
	}
	used, err := uses(pod, catalog.Objects(catalog.At(a.Object, "spec")["volumes"]))
	if err != nil {
		return refuse(a, "error checking mirror pod for API references: %w", err)
	}
	if used != "" {
		return refuse(a, "node %q can not create pods that reference %s", node, used)
	}
	return nil
}

// mirrorOwner rejects a mirror pod unless its only owner is its Node.
func (n nodeLimits) mirrorOwner(ctx context.Context, node string, a *admit.Attributes, pod *corev1.Pod) error {
	switch len(pod.OwnerReferences) {
	case 0:
		return refuse(a, "node %q can only create pods with an owner reference set to itself", node)
	case 1:
	default:
		return refuse(a, "node %q can only create pods with a single owner reference set to itself", node)
	}
	owner := pod.OwnerReferences[0]
	switch {
	case owner.APIVersion != "v1" || owner.Kind != "Node" || owner.Name != node:
		return refuse(a, "node %q can only create pods with an owner reference set to itself", node)
	case owner.Controller == nil || !*owner.Controller:
		return refuse(a, "node %q can only create pods with a controller owner reference set to itself", node)
	case owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion:
		return refuse(a, "node %q must not set blockOwnerDeletion on an owner reference", node)
	}
	own, err := plugin.Lookup[corev1.Node](ctx, n.view, ref.Nodes.Prefix, "", node)
	switch {
	case err != nil:
		return err
	case own == nil:
		return apierrors.NewNotFound(corev1.Resource("node"), node)
	case own.UID != owner.UID:
		return refuse(a, "node %s UID mismatch: expected %s got %s", node, owner.UID, own.UID)
	}
	return nil
}

// plainVolumes are volume types without references to API objects. The other tables map volume types to the referenced
// resource.
var (
	plainVolumes = []string{
		"awsElasticBlockStore", "azureDisk", "cephfs", "cinder", "downwardAPI", "emptyDir", "fc", "flexVolume",
		"flocker", "gcePersistentDisk", "gitRepo", "hostPath", "image", "iscsi", "nfs", "photonPersistentDisk",
		"portworxVolume",
		"quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume",
	}
	volumeUses = [][2]string{
		{"configMap", "configmaps (via configmap volumes)"},
		{"secret", "secrets (via secret volumes)"},
		{"csi", "csidrivers (via CSI volumes)"},
		{"glusterfs", "endpoints (via glusterFS volumes)"},
		{"persistentVolumeClaim", "persistentvolumeclaims"},
		{"ephemeral", "persistentvolumeclaims (via ephemeral volumes)"},
		{"azureFile", "secrets (via azureFile volumes)"},
	}
	projectionUses = [][2]string{
		{"configMap", "configmaps (via projected volumes)"},
		{"secret", "secrets (via projected volumes)"},
		{"serviceAccountToken", "serviceaccounts (via projected volumes)"},
		{"clusterTrustBundle", "clustertrustbundles"},
		{"podCertificate", "podcertificates"},
		{"downwardAPI", ""},
	}
)

// uses returns the kind of objects that a pod uses, the first of several, "" if it uses none.
func uses(pod *corev1.Pod, volumes []object) (string, error) {
	if pod.Spec.ServiceAccountName != "" || pod.Spec.DeprecatedServiceAccount != "" {
		return "serviceaccounts", nil
	}
	for _, resource := range []string{"secrets", "configmaps"} {
		if node.Needs(pod, resource) {
			return resource, nil
		}
	}
	if len(pod.Spec.ResourceClaims) > 0 {
		return "resourceclaims", nil
	}
	for _, v := range volumes {
		if used, err := volumeUse(v); used != "" || err != nil {
			return used, err
		}
	}
	return "", nil
}

func volumeUse(v object) (string, error) {
	for _, name := range plainVolumes {
		if v[name] != nil {
			return "", nil
		}
	}
	if used, ok := firstUse(v, volumeUses); ok {
		return used, nil
	}
	name, _ := v["name"].(string)
	if v["projected"] == nil {
		return "", fmt.Errorf("unknown volume type for volume  %q", name)
	}
	for _, source := range catalog.Objects(catalog.At(v, "projected")["sources"]) {
		used, ok := firstUse(source, projectionUses)
		switch {
		case !ok:
			return "", fmt.Errorf("unknown source for projected volume %q", name)
		case used != "":
			return used, nil
		}
	}
	return "", nil
}

// firstUse returns the meaning of the first of the named fields that obj has.
func firstUse(obj object, meanings [][2]string) (used string, ok bool) {
	for _, m := range meanings {
		if obj[m[0]] != nil {
			return m[1], true
		}
	}
	return "", false
}

// podStatus lets a kubelet report the status of a pod on its node, but not change its labels and claims.
func podStatus(node string, a *admit.Attributes) error {
	if catalog.Text(a.Old, "spec", "nodeName") != node {
		return refuse(a, "node %q can only update pod status for pods with spec.nodeName set to itself", node)
	}
	old, err := claimsAndLabels(a.Old)
	if err != nil {
		return err
	}
	now, err := claimsAndLabels(a.Object)
	if err != nil {
		return err
	}
	same := quantity.Semantic.DeepEqual
	switch {
	case !maps.Equal(old.Labels, now.Labels):
		return refuse(a, "node %q cannot update labels through pod status", node)
	case !same(old.Status.ResourceClaimStatuses, now.Status.ResourceClaimStatuses):
		return refuse(a, "node %q cannot update resource claim statues", node) // as in Kubernetes
	case !same(old.Status.ExtendedResourceClaimStatus, now.Status.ExtendedResourceClaimStatus):
		return refuse(a, "node %q cannot update extended resource claim status", node)
	case !same(old.Status.NodeAllocatableResourceClaimStatuses, now.Status.NodeAllocatableResourceClaimStatuses):
		return refuse(a, "node %q cannot update node allocatable resource claim statuses", node)
	}
	return nil
}

// claimsAndLabels decodes the parts of a pod that its kubelet may not change.
func claimsAndLabels(obj object) (*corev1.Pod, error) {
	status, some := catalog.At(obj, "status"), object{}
	for _, name := range []string{"resourceClaimStatuses", "extendedResourceClaimStatus",
		"nodeAllocatableResourceClaimStatuses"} {
		if v, ok := status[name]; ok {
			some[name] = v
		}
	}
	labels := object{}
	if v, ok := catalog.At(obj, "metadata")["labels"]; ok {
		labels["labels"] = v
	}
	return parts[corev1.Pod](object{"metadata": labels, "status": some}, "metadata", "status")
}
