package volume

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helper "k8s.io/component-helpers/storage/volume"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// bind sets the references between a volume and a claim. It writes only missing parts, so a bind that was interrupted
// by another write or a restart is finished by the next reconcile.
func (b *binder) bind(ctx context.Context, v *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	next, dirty, err := cluster.KeepFor(v, claim)
	if err != nil {
		return err
	}
	if dirty {
		if v, err = cluster.PersistentVolumes.Replace(ctx, b.Cluster, next); err != nil {
			return err
		}
	}
	if v, err = b.volumePhase(ctx, v, corev1.VolumeBound, ""); err != nil {
		return err
	}
	if claim.Spec.VolumeName != v.Name || !metav1.HasAnnotation(claim.ObjectMeta, helper.AnnBindCompleted) {
		if claim.Spec.VolumeName != v.Name {
			claim.Spec.VolumeName = v.Name
			if !metav1.HasAnnotation(claim.ObjectMeta, helper.AnnBoundByController) {
				metav1.SetMetaDataAnnotation(&claim.ObjectMeta, helper.AnnBoundByController, "yes")
			}
		}
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, helper.AnnBindCompleted, "yes")
		if claim, err = cluster.PersistentVolumeClaims.Replace(ctx, b.Cluster, claim); err != nil {
			return err
		}
	}
	return b.claimStatus(ctx, claim, corev1.ClaimBound, v)
}

// unbind makes a volume available again. A volume that a user has reserved for a claim keeps the claim's name.
func (b *binder) unbind(ctx context.Context, v *corev1.PersistentVolume) error {
	if metav1.HasAnnotation(v.ObjectMeta, helper.AnnBoundByController) {
		v.Spec.ClaimRef = nil
		delete(v.Annotations, helper.AnnBoundByController)
	} else {
		v.Spec.ClaimRef.UID = ""
	}
	v, err := cluster.PersistentVolumes.Replace(ctx, b.Cluster, v)
	if err == nil {
		_, err = b.volumePhase(ctx, v, corev1.VolumeAvailable, "")
	}
	return err
}

func (b *binder) volumePhase(
	ctx context.Context, v *corev1.PersistentVolume, phase corev1.PersistentVolumePhase, message string,
) (*corev1.PersistentVolume, error) {
	if v.Status.Phase == phase {
		return v, nil
	}
	v.Status.Phase, v.Status.Message = phase, message
	return cluster.PersistentVolumes.ReplaceStatus(ctx, b.Cluster, v)
}

// fail sets the phase of a volume to Failed, since it cannot be reclaimed.
func (b *binder) fail(ctx context.Context, v *corev1.PersistentVolume, reason, message string) error {
	if v.Status.Phase == corev1.VolumeFailed {
		return nil
	}
	v, err := b.volumePhase(ctx, v, corev1.VolumeFailed, message)
	if err == nil {
		b.Warning(ctx, cluster.PersistentVolumes.Ref(v), reason, "%s", message)
	}
	return err
}

// claimStatus writes the phase of a claim, and the properties of its volume, which may be nil.
func (b *binder) claimStatus(
	ctx context.Context, claim *corev1.PersistentVolumeClaim, phase corev1.PersistentVolumeClaimPhase,
	v *corev1.PersistentVolume,
) error {
	was := claim.Status.Phase
	claim.Status.Phase = phase
	if v == nil {
		claim.Status.AccessModes, claim.Status.Capacity, claim.Status.CurrentVolumeAttributesClassName = nil, nil, nil
	} else {
		if !slices.Equal(claim.Status.AccessModes, v.Spec.AccessModes) {
			claim.Status.AccessModes = v.Spec.AccessModes
		}
		if was != phase {
			claim.Status.Capacity = v.Spec.Capacity
			if was == corev1.ClaimPending || was == "" {
				claim.Status.CurrentVolumeAttributesClassName = v.Spec.VolumeAttributesClassName
			}
		}
	}
	_, err := cluster.PersistentVolumeClaims.ReplaceStatus(ctx, b.Cluster, claim) // unchanged fields cause no write
	return err
}
