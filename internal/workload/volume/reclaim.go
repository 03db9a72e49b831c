package volume

import (
	"context"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helper "k8s.io/component-helpers/storage/volume"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// lookAtVolume sets the phase of a volume (available, bound or released), and reclaims a released one.
func (b *binder) lookAtVolume(ctx context.Context, v *corev1.PersistentVolume) error {
	ref := v.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		_, err := b.volumePhase(ctx, v, corev1.VolumeAvailable, "")
		return err
	}
	claim := cluster.PersistentVolumeClaims.Read(b.index, ref.Namespace, ref.Name)
	if claim == nil || claim.UID != ref.UID {
		// A claim that another server has just made may not be seen yet, and a volume cannot be had back.
		if err := b.index.Fresh(ctx); err != nil {
			return err
		}
		claim = cluster.PersistentVolumeClaims.Read(b.index, ref.Namespace, ref.Name)
	}
	switch {
	case claim == nil || claim.UID != ref.UID:
		return b.release(ctx, v)
	case claim.Spec.VolumeName == "":
		if helper.CheckVolumeModeMismatches(&claim.Spec, &v.Spec) {
			b.Warning(ctx, cluster.PersistentVolumes.Ref(v), "VolumeMismatch", "Cannot bind PersistentVolume to "+
				"requested PersistentVolumeClaim %q due to incompatible volumeMode.", claim.Name)
			b.Warning(ctx, cluster.PersistentVolumeClaims.Ref(claim), "VolumeMismatch", "Cannot bind PersistentVolume "+
				"%q to requested PersistentVolumeClaim due to incompatible volumeMode.", v.Name)
		}
		return nil // the claim is reconciled too
	case claim.Spec.VolumeName == v.Name:
		_, err := b.volumePhase(ctx, v, corev1.VolumeBound, "")
		return err
	case metav1.HasAnnotation(v.ObjectMeta, helper.AnnDynamicallyProvisioned) &&
		v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete:
		return b.release(ctx, v) // the claim is bound to another volume by now
	}
	return b.unbind(ctx, v)
}

// release reclaims a volume with a deleted claim.
func (b *binder) release(ctx context.Context, v *corev1.PersistentVolume) error {
	if v.Status.Phase != corev1.VolumeReleased && v.Status.Phase != corev1.VolumeFailed {
		var err error
		if v, err = b.volumePhase(ctx, v, corev1.VolumeReleased, ""); err != nil {
			return err
		}
	}
	switch v.Spec.PersistentVolumeReclaimPolicy {
	case corev1.PersistentVolumeReclaimDelete:
		return b.delete(ctx, v)
	case corev1.PersistentVolumeReclaimRecycle:
		if v.Spec.HostPath == nil && v.Spec.NFS == nil {
			return b.fail(ctx, v, "VolumeFailedRecycle", "No recycler plugin found for the volume!")
		}
		b.Normal(ctx, cluster.PersistentVolumes.Ref(v), "VolumeRecycled", "Volume recycled")
		return b.unbind(ctx, v)
	}
	return nil
}

// deletable are the paths that Kubernetes deletes of a node.
var deletable = regexp.MustCompile("^/tmp/.+")

// delete deletes a volume without a provisioner. A provisioner deletes its own volumes.
func (b *binder) delete(ctx context.Context, v *corev1.PersistentVolume) error {
	switch by := v.Annotations[helper.AnnDynamicallyProvisioned]; {
	case by != "" || v.Spec.CSI != nil || metav1.HasAnnotation(v.ObjectMeta, helper.AnnMigratedTo):
		return nil
	case v.Spec.HostPath == nil:
		return b.fail(ctx, v, "VolumeFailedDelete", fmt.Sprintf(
			"error getting deleter volume plugin for volume %q: no deletable volume plugin matched", v.Name))
	case !deletable.MatchString(v.Spec.HostPath.Path):
		return b.fail(ctx, v, "VolumeFailedDelete",
			"host_path deleter only supports /tmp/.+ but received provided "+v.Spec.HostPath.Path)
	}
	return cluster.PersistentVolumes.Delete(ctx, b.Cluster, v, metav1.DeleteOptions{})
}
