package volume

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	helper "k8s.io/component-helpers/storage/volume"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// modify changes the VolumeAttributesClass of a claim's volume to the requested one, as external resizers do
// (KEP-3751).
func (p *provisioner) modify(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	wants := value(claim.Spec.VolumeAttributesClassName)
	if claim.Status.Phase != corev1.ClaimBound || wants == "" ||
		wants == value(claim.Status.CurrentVolumeAttributesClassName) {
		return nil
	}
	v := cluster.PersistentVolumes.Read(p.index, "", claim.Spec.VolumeName)
	if v == nil || v.Annotations[helper.AnnDynamicallyProvisioned] != Provisioner {
		return nil
	}
	about := cluster.PersistentVolumeClaims.Ref(claim)
	if of := cluster.VolumeAttributesClasses.Read(p.index, "", wants); of == nil || of.DriverName != Provisioner {
		pending := &corev1.ModifyVolumeStatus{
			TargetVolumeAttributesClassName: wants, Status: corev1.PersistentVolumeClaimModifyVolumePending,
		}
		if has := claim.Status.ModifyVolumeStatus; has != nil && *has == *pending {
			return nil
		}
		if of == nil {
			p.Warning(ctx, about, "VolumeModifyFailed", "VAC %s does not exist.", wants)
		} else {
			p.Warning(ctx, about, "VolumeModifyFailed", "VAC %s is for driver %s, not for %s", wants, of.DriverName,
				Provisioner)
		}
		_, err := cluster.PersistentVolumeClaims.UpdateStatus(ctx, p.Cluster, claim,
			func(now *corev1.PersistentVolumeClaim) error {
				now.Status.ModifyVolumeStatus = pending
				return nil
			})
		return err
	}
	if value(v.Spec.VolumeAttributesClassName) != wants {
		p.Normal(ctx, about, "VolumeModify", "external resizer is modifying volume %s with vac %s", claim.Name, wants)
		_, err := cluster.PersistentVolumes.Update(ctx, p.Cluster, v, func(now *corev1.PersistentVolume) error {
			now.Spec.VolumeAttributesClassName = &wants
			return nil
		})
		if err != nil {
			return err
		}
	}
	_, err := cluster.PersistentVolumeClaims.UpdateStatus(ctx, p.Cluster, claim,
		func(now *corev1.PersistentVolumeClaim) error {
			now.Status.CurrentVolumeAttributesClassName, now.Status.ModifyVolumeStatus = &wants, nil
			return nil
		})
	if err == nil {
		p.Normal(ctx, about, "VolumeModifySuccessful", "external resizer modified volume %s with vac %s successfully",
			claim.Name, wants)
	}
	return err
}

// needWaiting requests the claims that wait for a VolumeAttributesClass.
func (p *provisioner) needWaiting(name string, need func(string)) {
	claims := p.View.Collection(cluster.PersistentVolumeClaims.Prefix).Snapshot()
	claims.Scan("", "", func(e *watchcache.Entry) bool {
		if wants, _ := e.Field("spec.volumeAttributesClassName"); wants == name {
			need(e.Key())
		}
		return true
	})
}
