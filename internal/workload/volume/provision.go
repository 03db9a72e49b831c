package volume

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helper "k8s.io/component-helpers/storage/volume"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

const (
	// Provisioner is the name of the simulated provisioner in StorageClasses.
	Provisioner = "simulated.bowsprit.dev"
	// standard is the class that the server creates.
	standard = "standard"
)

// start creates the default class, unless there is any class: then the user has chosen, possibly to have no default.
func start(ctx context.Context, h *part.Host) error {
	if !h.Runs(provisionerLoop) || h.View.Collection(cluster.StorageClasses.Prefix).Snapshot().Len() > 0 {
		return nil
	}
	c := cluster.Controller(h, provisionerLoop)
	_, err := cluster.StorageClasses.Create(ctx, c, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name: standard, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner: Provisioner, AllowVolumeExpansion: new(true),
	})
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
		return nil
	case control.Refused(ctx, err):
		h.Log.Warn("the StorageClass of simulated volumes cannot be made; claims without a class stay pending",
			"class", standard, "error", err)
		return nil
	}
	return fmt.Errorf("class %s of simulated volumes: %w", standard, err)
}

// provisioner creates volumes for the claims of classes that name it, deletes released ones, and resizes bound ones, as
// external provisioners and resizers do. Its keys are the keys of the binder.
type provisioner struct {
	*cluster.Cluster
	index *cluster.Index
}

func (p *provisioner) Observe(ev *watchcache.Event, need func(string)) {
	switch {
	case cluster.PersistentVolumeClaims.Is(ev):
		need(ev.Entry.Key())
	case cluster.PersistentVolumes.Is(ev):
		need("/" + ev.Entry.Name)
	case cluster.VolumeAttributesClasses.Is(ev) && ev.Type != watchcache.Deleted:
		p.needWaiting(ev.Entry.Name, need)
	}
}

func (p *provisioner) Reconcile(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	if namespace == "" {
		if v := cluster.PersistentVolumes.Read(p.index, "", name); v != nil {
			return settle(p.remove(ctx, v))
		}
		return nil
	}
	claim := cluster.PersistentVolumeClaims.Read(p.index, namespace, name)
	switch {
	case claim == nil:
		return nil
	case claim.Spec.VolumeName != "":
		if err := p.grow(ctx, claim); err != nil {
			return settle(err)
		}
		return settle(p.modify(ctx, claim))
	case claim.DeletionTimestamp == nil && claim.Annotations[helper.AnnStorageProvisioner] == Provisioner:
		return settle(p.provision(ctx, claim))
	}
	return nil
}

// provision creates the volume of a claim, at the request of the binder.
func (p *provisioner) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	of := class(p.index, claim)
	name := "pvc-" + string(claim.UID)
	if of == nil || of.Provisioner != Provisioner || cluster.PersistentVolumes.Read(p.index, "", name) != nil ||
		cluster.WaitsForPod(of) && !helper.IsDelayBindingProvisioning(claim) {
		return nil
	}
	about := cluster.PersistentVolumeClaims.Ref(claim)
	p.Normal(ctx, about, "Provisioning", "External provisioner is provisioning volume for claim \"%s/%s\"",
		claim.Namespace, claim.Name)
	if with := value(claim.Spec.VolumeAttributesClassName); with != "" {
		var why string
		switch has := cluster.VolumeAttributesClasses.Read(p.index, "", with); {
		case has == nil:
			why = fmt.Sprintf("volumeattributesclass.storage.k8s.io %q not found", with)
		case has.DriverName != Provisioner:
			why = fmt.Sprintf("VAC %s is for driver %s, not for %s", with, has.DriverName, Provisioner)
		}
		if why != "" {
			p.Warning(ctx, about, "ProvisioningFailed", "failed to provision volume with StorageClass %q: %s", of.Name, why)
			return nil // until the class exists
		}
	}
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{helper.AnnDynamicallyProvisioned: Provisioner},
			Finalizers: []string{helper.PVDeletionProtectionFinalizer},
		},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes,
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage],
			},
			StorageClassName: of.Name, MountOptions: of.MountOptions, VolumeMode: claim.Spec.VolumeMode,
			VolumeAttributesClassName: claim.Spec.VolumeAttributesClassName,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name,
				UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: Provisioner, VolumeHandle: name},
			},
		},
	}
	if of.ReclaimPolicy != nil {
		v.Spec.PersistentVolumeReclaimPolicy = *of.ReclaimPolicy
	}
	if _, err := cluster.PersistentVolumes.Create(ctx, p.Cluster, v); err != nil && !apierrors.IsAlreadyExists(err) {
		p.Warning(ctx, about, "ProvisioningFailed", "failed to provision volume with StorageClass %q: %v", of.Name, err)
		return err
	}
	p.Normal(ctx, about, "ProvisioningSucceeded", "Successfully provisioned volume %s", name)
	return nil
}

// remove deletes a released volume, and removes the finalizer of a deleted one.
func (p *provisioner) remove(ctx context.Context, v *corev1.PersistentVolume) error {
	if v.Annotations[helper.AnnDynamicallyProvisioned] != Provisioner || v.Status.Phase == corev1.VolumeBound {
		return nil
	}
	if v.DeletionTimestamp == nil {
		if v.Status.Phase != corev1.VolumeReleased ||
			v.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
			return nil
		}
		if err := cluster.PersistentVolumes.Delete(ctx, p.Cluster, v, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	_, err := cluster.PersistentVolumes.Update(ctx, p.Cluster, v, func(now *corev1.PersistentVolume) error {
		now.Finalizers = slices.DeleteFunc(now.Finalizers,
			func(f string) bool { return f == helper.PVDeletionProtectionFinalizer })
		return nil
	})
	return err
}

// grow enlarges the volume of a claim. Admission has checked that its class allows expansion.
func (p *provisioner) grow(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	wants, has := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	if claim.Status.Phase != corev1.ClaimBound || quantity.Cmp(wants, has) <= 0 {
		return nil
	}
	v := cluster.PersistentVolumes.Read(p.index, "", claim.Spec.VolumeName)
	if v == nil || v.Annotations[helper.AnnDynamicallyProvisioned] != Provisioner {
		return nil
	}
	about := cluster.PersistentVolumeClaims.Ref(claim)
	if size := v.Spec.Capacity[corev1.ResourceStorage]; quantity.Cmp(size, wants) < 0 {
		p.Normal(ctx, about, "Resizing", "External resizer is resizing volume %s", v.Name)
		_, err := cluster.PersistentVolumes.Update(ctx, p.Cluster, v, func(now *corev1.PersistentVolume) error {
			now.Spec.Capacity[corev1.ResourceStorage] = wants
			return nil
		})
		if err != nil {
			return err
		}
	} else {
		wants = size // an earlier attempt got this far
	}
	_, err := cluster.PersistentVolumeClaims.UpdateStatus(ctx, p.Cluster, claim,
		func(now *corev1.PersistentVolumeClaim) error {
			now.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: wants}
			return nil
		})
	if err == nil {
		p.Normal(ctx, about, "VolumeResizeSuccessful", "Resize volume succeeded")
	}
	return err
}
