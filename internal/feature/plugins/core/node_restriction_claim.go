package core

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

// claim lets a kubelet report the new size of a claim's volume, and nothing else.
func (n nodeLimits) claim(_ context.Context, node string, a *admit.Attributes) error {
	switch {
	case a.Subresource != "status":
		return refuse(a, "may only update PVC status")
	case a.Operation != admit.Update:
		return refuse(a, "unexpected operation %q", a.Operation)
	}
	old, err := fixedOfClaim(a.Old)
	if err != nil {
		return err
	}
	now, err := fixedOfClaim(a.Object)
	if err != nil {
		return err
	}
	if !quantity.Semantic.DeepEqual(old, now) {
		return refuse(a, "node %q is not allowed to update fields other than status.quantity and status.conditions: %v",
			node, rule.Difference(old, now))
	}
	return nil
}

// fixedClaim is the part of a claim that a kubelet may not change. Its JSON is shown in the error, and equals
// Kubernetes' internal type: field names without tags, and the fields that a kubelet may change as nulls.
type fixedClaim struct {
	metav1.ObjectMeta
	Spec   fixedClaimSpec
	Status fixedClaimStatus
}

type fixedClaimSpec struct {
	AccessModes               []corev1.PersistentVolumeAccessMode
	Selector                  *metav1.LabelSelector
	Resources                 struct{ Limits, Requests corev1.ResourceList }
	VolumeName                string
	StorageClassName          *string
	VolumeMode                *corev1.PersistentVolumeMode
	DataSource                *localDataSource
	DataSourceRef             *dataSource
	VolumeAttributesClassName *string
}

type localDataSource struct {
	APIGroup   *string
	Kind, Name string
}

type dataSource struct {
	APIGroup   *string
	Kind, Name string
	Namespace  *string
}

type fixedClaimStatus struct {
	Phase                                                               corev1.PersistentVolumeClaimPhase
	AccessModes                                                         []corev1.PersistentVolumeAccessMode
	Capacity, Conditions, AllocatedResources, AllocatedResourceStatuses *struct{} // always nil
	CurrentVolumeAttributesClassName                                    *string
	ModifyVolumeStatus                                                  *volumeModification
	HealthStatus                                                        *struct{} // always nil
}

type volumeModification struct {
	TargetVolumeAttributesClassName string
	Status                          corev1.PersistentVolumeClaimModifyVolumeStatus
}

func fixedOfClaim(obj object) (*fixedClaim, error) {
	c := new(corev1.PersistentVolumeClaim)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, c); err != nil {
		return nil, err
	}
	c.ResourceVersion, c.ManagedFields = "", nil
	out := &fixedClaim{
		ObjectMeta: c.ObjectMeta,
		Spec: fixedClaimSpec{
			AccessModes: c.Spec.AccessModes, Selector: c.Spec.Selector, VolumeName: c.Spec.VolumeName,
			StorageClassName: c.Spec.StorageClassName, VolumeMode: c.Spec.VolumeMode,
			DataSource: (*localDataSource)(c.Spec.DataSource), DataSourceRef: (*dataSource)(c.Spec.DataSourceRef),
			VolumeAttributesClassName: c.Spec.VolumeAttributesClassName,
		},
		Status: fixedClaimStatus{
			Phase: c.Status.Phase, AccessModes: c.Status.AccessModes,
			CurrentVolumeAttributesClassName: c.Status.CurrentVolumeAttributesClassName,
			ModifyVolumeStatus:               (*volumeModification)(c.Status.ModifyVolumeStatus),
		},
	}
	out.Spec.Resources.Limits, out.Spec.Resources.Requests = c.Spec.Resources.Limits, c.Spec.Resources.Requests
	return out, nil
}
