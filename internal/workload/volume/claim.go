package volume

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helper "k8s.io/component-helpers/storage/volume"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

// lookAtUnbound binds an unbound claim to a matching volume, or else requests a new one.
func (b *binder) lookAtUnbound(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if claim.Spec.VolumeName != "" {
		return b.bindWanted(ctx, claim)
	}
	of := class(b.index, claim)
	waits := cluster.WaitsForPod(of)
	found, err := match(claim, cluster.PersistentVolumes.ReadAll(b.index, ""), waits)
	if err != nil {
		return err
	}
	if found != nil {
		return b.bind(ctx, found.DeepCopy(), claim)
	}
	if !helper.PersistentVolumeClaimHasClass(claim) {
		if name := b.chosen.Name(); name != "" {
			claim.Spec.StorageClassName = &name
			_, err := cluster.PersistentVolumeClaims.Replace(ctx, b.Cluster, claim)
			return err // it is requeued
		}
	}
	about := cluster.PersistentVolumeClaims.Ref(claim)
	switch name := helper.GetPersistentVolumeClaimClass(claim); {
	case waits && !helper.IsDelayBindingProvisioning(claim):
		reason, message, later := b.waiting(claim)
		if later > 0 {
			return control.Again(later)
		}
		b.Normal(ctx, about, reason, "%s", message)
	case name == "":
		b.Normal(ctx, about, "FailedBinding",
			"no persistent volumes available for this claim and no storage class is set")
	case of == nil:
		b.Warning(ctx, about, "ProvisioningFailed", "storageclass.storage.k8s.io %q not found", name)
		return nil
	case strings.HasPrefix(of.Provisioner, "kubernetes.io/"):
		b.Warning(ctx, about, "ProvisioningFailed", "no volume plugin matched name: %s", of.Provisioner)
		return nil
	default:
		return b.requestProvisioning(ctx, claim, of.Provisioner)
	}
	return b.claimStatus(ctx, claim, corev1.ClaimPending, nil)
}

// resync is how long a pod may have no node before its claims report that they wait for it. Kubernetes' controller does
// not watch pods, and resyncs its claims after that time.
const resync = 15 * time.Second

// waiting returns the event about a claim that waits for its first consumer, or the time until it can be reported.
func (b *binder) waiting(claim *corev1.PersistentVolumeClaim) (reason, message string, later time.Duration) {
	var names []string
	for _, p := range cluster.Pods.ReadAll(b.index, claim.Namespace) {
		if p.Spec.NodeName != "" || replica.HasEnded(p) || !slices.Contains(cluster.ClaimsOf(p), claim.Name) {
			continue
		}
		names = append(names, p.Name)
		if came := p.CreationTimestamp; !came.Time.Before(claim.CreationTimestamp.Time) {
			later = max(later, resync-b.Now().Sub(came.Time))
		}
	}
	switch len(names) {
	case 0:
		return "WaitForFirstConsumer", "waiting for first consumer to be created before binding", 0
	case 1:
		return "WaitForPodScheduled", fmt.Sprintf("waiting for pod %s to be scheduled", names[0]), later
	}
	return "WaitForPodScheduled", fmt.Sprintf("waiting for pods %s to be scheduled", strings.Join(names, ",")), later
}

// requestProvisioning requests a volume for a claim from a provisioner.
func (b *binder) requestProvisioning(ctx context.Context, claim *corev1.PersistentVolumeClaim, name string) error {
	if claim.Annotations[helper.AnnStorageProvisioner] != name ||
		claim.Annotations[helper.AnnBetaStorageProvisioner] != name {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, helper.AnnBetaStorageProvisioner, name)
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, helper.AnnStorageProvisioner, name)
		if _, err := cluster.PersistentVolumeClaims.Replace(ctx, b.Cluster, claim); err != nil {
			return err
		}
	}
	b.Normal(ctx, cluster.PersistentVolumeClaims.Ref(claim), "ExternalProvisioning",
		"Waiting for a volume to be created either by the external provisioner '%s' or manually by the system "+
			"administrator. If volume creation is delayed, please verify that the provisioner is running and "+
			"correctly registered.", name)
	return nil
}

// bindWanted binds a claim that names its volume.
func (b *binder) bindWanted(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	about := cluster.PersistentVolumeClaims.Ref(claim)
	v := cluster.PersistentVolumes.Read(b.index, "", claim.Spec.VolumeName)
	switch {
	case v == nil:
	case v.Spec.ClaimRef == nil:
		err := satisfies(v, claim)
		if err == nil {
			return b.bind(ctx, v.DeepCopy(), claim)
		}
		b.Warning(ctx, about, "VolumeMismatch", "Cannot bind to requested volume %q: %s", v.Name, err)
	case helper.IsVolumeBoundToClaim(v, claim):
		return b.bind(ctx, v.DeepCopy(), claim)
	default:
		b.Warning(ctx, about, "FailedBinding", "volume %q already bound to a different claim.", v.Name)
	}
	return b.claimStatus(ctx, claim, corev1.ClaimPending, nil)
}

// lookAtBound sees whether a claim that was bound still is.
func (b *binder) lookAtBound(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if claim.Spec.VolumeName == "" {
		return b.lost(ctx, claim, "ClaimLost",
			"Bound claim has lost reference to PersistentVolume. Data on the volume is lost!")
	}
	v := cluster.PersistentVolumes.Read(b.index, "", claim.Spec.VolumeName)
	switch {
	case v == nil:
		return b.lost(ctx, claim, "ClaimLost",
			"Bound claim has lost its PersistentVolume. Data on the volume is lost!")
	case v.Spec.ClaimRef == nil || v.Spec.ClaimRef.UID == claim.UID:
		return b.bind(ctx, v.DeepCopy(), claim)
	}
	return b.lost(ctx, claim, "ClaimMisbound",
		"Two claims are bound to the same volume, this one is bound incorrectly")
}

func (b *binder) lost(ctx context.Context, claim *corev1.PersistentVolumeClaim, reason, message string) error {
	if claim.Status.Phase == corev1.ClaimLost {
		return nil
	}
	if err := b.claimStatus(ctx, claim, corev1.ClaimLost, nil); err != nil {
		return err
	}
	b.Warning(ctx, cluster.PersistentVolumeClaims.Ref(claim), reason, "%s", message)
	return nil
}
