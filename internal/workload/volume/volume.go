// Package volume binds PersistentVolumeClaims to PersistentVolumes as kube-controller-manager does, and simulates a
// provisioner, on a server that simulates workloads. Volumes hold no data.
//
// claim.go and reclaim.go reconcile one claim and one volume, and bind.go writes the result. provision.go is the
// provisioner, with its StorageClass; ephemeral.go creates the claims of pods.
package volume

import (
	"bytes"
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helper "k8s.io/component-helpers/storage/volume"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/storage"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// provisionerLoop is the name of the provisioner's loop, for --controllers.
const provisionerLoop = "simulated-provisioner"

// Part brings the controller, the provisioner and its class.
func Part(shared *cluster.Shared) part.Part {
	return part.Part{
		Name:  "simulated volumes",
		Start: start,
		Loops: []part.Loop{
			// One worker: bindings are decided one after another.
			cluster.Loop("persistentvolume-binder-controller", 1, func(c *cluster.Cluster) control.Reconciler {
				c.User, c.Component = control.ControllerUser("persistent-volume-binder"), "persistentvolume-controller"
				return &binder{c, shared.Of(c.Host), storage.DefaultStorageClass(c.View)}
			}),
			cluster.Loop(provisionerLoop, 1, func(c *cluster.Cluster) control.Reconciler {
				c.Manager, c.Component = "simulated-provisioner", Provisioner
				return &provisioner{c, shared.Of(c.Host)}
			}),
			cluster.Loop("ephemeral-volume-controller", 1, func(c *cluster.Cluster) control.Reconciler {
				c.Component = "ephemeral_volume"
				return &ephemeral{c, shared.Of(c.Host)}
			}),
		},
	}
}

// binder binds claims and volumes. Its keys are "namespace/name" of claims and "/name" of volumes.
type binder struct {
	*cluster.Cluster
	index  *cluster.Index
	chosen *plugin.DefaultClass // default class of claims without one
}

func (b *binder) Observe(ev *watchcache.Event, need func(string)) {
	switch {
	case cluster.PersistentVolumeClaims.Is(ev):
		need(ev.Entry.Key())
		if name, _ := ev.Entry.Field("spec.volumeName"); name != "" {
			need("/" + name)
		}
		if ev.Type == watchcache.Deleted { // a volume may name it without being named by it
			b.needVolumes(ev.Entry.Namespace, ev.Entry.Name, need)
		}
	case cluster.PersistentVolumes.Is(ev):
		need("/" + ev.Entry.Name)
		namespace, _ := ev.Entry.Field("spec.claimRef.namespace")
		if name, _ := ev.Entry.Field("spec.claimRef.name"); name != "" {
			need(namespace + "/" + name)
		}
		if phase, _ := ev.Entry.Field("status.phase"); phase == string(corev1.VolumeAvailable) {
			b.needPending(need)
		}
	case cluster.StorageClasses.Is(ev):
		b.needPending(need)
	case cluster.Pods.Is(ev) && ev.Prev == nil && ev.Type != watchcache.Deleted:
		b.needClaims(ev.Entry, need)
	}
}

// needClaims requests the claims of a pod without a node, which report that they wait for it.
func (b *binder) needClaims(e *watchcache.Entry, need func(string)) {
	if !namesClaims(e) {
		return
	}
	if p := cluster.Pods.Decode(b.Cluster, e); p != nil && p.Spec.NodeName == "" {
		for _, name := range cluster.ClaimsOf(p) {
			need(p.Namespace + "/" + name)
		}
	}
}

// needPending requests the claims without a volume, after a new volume or class.
func (b *binder) needPending(need func(string)) {
	b.View.Collection(cluster.PersistentVolumeClaims.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		if phase, _ := e.Field("status.phase"); phase != string(corev1.ClaimBound) {
			need(e.Key())
		}
		return true
	})
}

// namesClaims reports whether a pod may have claims.
func namesClaims(pod *watchcache.Entry) bool {
	data := pod.JSON()
	return bytes.Contains(data, []byte(`"persistentVolumeClaim"`)) || bytes.Contains(data, []byte(`"ephemeral"`))
}

func (b *binder) needVolumes(namespace, claim string, need func(string)) {
	b.View.Collection(cluster.PersistentVolumes.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		if name, _ := e.Field("spec.claimRef.name"); name == claim {
			if in, _ := e.Field("spec.claimRef.namespace"); in == namespace {
				need("/" + e.Name)
			}
		}
		return true
	})
}

func (b *binder) Reconcile(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	if namespace == "" {
		if v := cluster.PersistentVolumes.Read(b.index, "", name); v != nil {
			return settle(b.lookAtVolume(ctx, v.DeepCopy()))
		}
		return nil
	}
	claim := cluster.PersistentVolumeClaims.Read(b.index, namespace, name)
	if claim == nil {
		return nil
	}
	claim = claim.DeepCopy()
	if metav1.HasAnnotation(claim.ObjectMeta, helper.AnnBindCompleted) {
		return settle(b.lookAtBound(ctx, claim))
	}
	return settle(b.lookAtUnbound(ctx, claim))
}

// settle returns the error of a reconcile: a Conflict is retried, NotFound is dropped.
func settle(err error) error { return cluster.Soon(control.IgnoreNotFound(err)) }

// class returns the class of a claim, or nil if it names none or a missing one.
func class(x *cluster.Index, claim *corev1.PersistentVolumeClaim) *storagev1.StorageClass {
	name := helper.GetPersistentVolumeClaimClass(claim)
	if name == "" {
		return nil
	}
	return cluster.StorageClasses.Read(x, "", name)
}
