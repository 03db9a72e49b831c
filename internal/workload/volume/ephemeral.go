package volume

import (
	"context"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helper "k8s.io/component-helpers/storage/ephemeral"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// ephemeral creates the claims of the ephemeral volumes of pods. Its keys are keys of pods. The garbage collector
// deletes a claim with its pod.
type ephemeral struct {
	*cluster.Cluster
	index *cluster.Index
}

func (e *ephemeral) Observe(ev *watchcache.Event, need func(string)) {
	switch {
	case cluster.Pods.Is(ev) && ev.Prev == nil && ev.Type != watchcache.Deleted && namesClaims(ev.Entry):
		need(ev.Entry.Key())
	case cluster.PersistentVolumeClaims.Is(ev) && ev.Type == watchcache.Deleted: // its pod needs a new claim
		pods := e.View.Collection(cluster.Pods.Prefix).Snapshot()
		pods.Scan(ev.Entry.Namespace, "", func(pod *watchcache.Entry) bool {
			if strings.HasPrefix(ev.Entry.Name, pod.Name+"-") && namesClaims(pod) {
				need(pod.Key())
			}
			return true
		})
	}
}

func (e *ephemeral) Reconcile(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	p := cluster.Pods.Read(e.index, namespace, name)
	if p == nil || p.DeletionTimestamp != nil {
		return nil
	}
	var failed []error
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		claim := helper.VolumeClaimName(p, v)
		if v.Ephemeral == nil || v.Ephemeral.VolumeClaimTemplate == nil ||
			cluster.PersistentVolumeClaims.Read(e.index, namespace, claim) != nil {
			continue // a claim of another owner blocks the pod, and the scheduler reports it
		}
		of := v.Ephemeral.VolumeClaimTemplate
		_, err := cluster.PersistentVolumeClaims.Create(ctx, e.Cluster, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Name: claim, Namespace: namespace, Labels: of.Labels, Annotations: of.Annotations,
				OwnerReferences: []metav1.OwnerReference{
					*metav1.NewControllerRef(p, cluster.Pods.GroupVersionKind()),
				},
			},
			Spec: of.Spec,
		})
		if !apierrors.IsAlreadyExists(err) && !cluster.NamespaceEnds(err) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
