package cluster

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/ephemeral"
	helper "k8s.io/component-helpers/storage/volume"
)

// KeepFor returns a copy of a volume that is reserved for a claim, and whether the reservation is new.
func KeepFor(v *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, bool, error) {
	claim = claim.DeepCopy()
	claim.SetGroupVersionKind(PersistentVolumeClaims.GroupVersionKind()) // decoded objects may lack it
	return helper.GetBindVolumeToClaim(v, claim)
}

// WaitsForPod reports whether claims of a class are bound only once a pod uses them. class may be nil.
func WaitsForPod(class *storagev1.StorageClass) bool {
	return class != nil && class.VolumeBindingMode != nil &&
		*class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// IsFor reports whether a claim was made for an ephemeral volume of a pod.
func IsFor(claim *corev1.PersistentVolumeClaim, pod types.UID) bool {
	by := metav1.GetControllerOfNoCopy(claim)
	return by != nil && by.UID == pod
}

// ClaimsOf returns the names of the claims that a pod mounts as volumes.
func ClaimsOf(p *corev1.Pod) (names []string) {
	for i := range p.Spec.Volumes {
		switch v := &p.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, ephemeral.VolumeClaimName(p, v))
		}
	}
	return names
}
