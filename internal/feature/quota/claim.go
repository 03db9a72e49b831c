package quota

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

// byClass separates the name of a storage class from the resource that a quota limits for it.
const byClass = ".storageclass.storage.k8s.io/"

var claimNames = []string{"persistentvolumeclaims", "requests.storage"}

var claims = &evaluator{
	handles: func(a *admit.Attributes) bool {
		switch a.Subresource {
		case "":
			return a.Operation == admit.Create || a.Operation == admit.Update
		case "status": // it contains the allocated storage
			return a.Object != nil && a.Old != nil
		}
		return false
	},
	limits: func(name string) bool {
		return name == "count/persistentvolumeclaims" || slices.Contains(claimNames, name) ||
			slices.ContainsFunc(claimNames, func(of string) bool { return strings.HasSuffix(name, byClass+of) })
	},
	measure: measureClaim,
}

func measureClaim(raw []byte) (*measure, error) {
	claim, err := typed[corev1.PersistentVolumeClaim](raw)
	if err != nil {
		return nil, err
	}
	m := &measure{
		amounts: amounts{"persistentvolumeclaims": one(), "count/persistentvolumeclaims": one()},
		scopes:  attributesClasses(claim),
	}
	class := storageClass(claim)
	if class != "" {
		m.amounts[corev1.ResourceName(class+byClass+"persistentvolumeclaims")] = one()
	}
	if q, ok := storageOf(claim); ok {
		m.amounts["requests.storage"] = q
		if class != "" {
			m.amounts[corev1.ResourceName(class+byClass+"requests.storage")] = q
		}
	}
	return m, nil
}

func storageClass(claim *corev1.PersistentVolumeClaim) string {
	if class, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return class
	}
	if claim.Spec.StorageClassName == nil {
		return ""
	}
	return *claim.Spec.StorageClassName
}

// storageOf returns the storage of a claim in whole bytes: the request, or the allocated storage if that is more.
func storageOf(claim *corev1.PersistentVolumeClaim) (resource.Quantity, bool) {
	q, ok := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if !ok {
		return q, false
	}
	q = whole(q)
	if given, ok := claim.Status.AllocatedResources[corev1.ResourceStorage]; ok && quantity.Cmp(given, q) > 0 {
		q = whole(given)
	}
	return q, true
}

func whole(q resource.Quantity) resource.Quantity {
	q = q.DeepCopy()
	q.RoundUp(0)
	return q
}

func attributesClasses(claim *corev1.PersistentVolumeClaim) claimScopes {
	names := claimScopes{}
	for _, name := range []*string{
		claim.Spec.VolumeAttributesClassName, claim.Status.CurrentVolumeAttributesClassName,
	} {
		if name != nil && *name != "" {
			names = append(names, *name)
		}
	}
	if s := claim.Status.ModifyVolumeStatus; s != nil && s.TargetVolumeAttributesClassName != "" {
		names = append(names, s.TargetVolumeAttributesClassName)
	}
	return names
}
