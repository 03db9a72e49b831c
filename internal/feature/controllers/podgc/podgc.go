package podgc

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// podCollector removes the pods that no kubelet will remove: pods on missing nodes, terminating pods without a node or
// on a node that is out of service, and the oldest ended pods beyond a limit.
//
// As in Kubernetes it works in rounds, while there are pods. A terminating pod on a missing node does not wait for a
// round. Its keys are "" for a round, else "namespace/name" of such a pod.
type podCollector struct {
	*part.Host
	// absent are the nodes that pods name and that do not exist, with the time when that was first seen.
	absent map[string]time.Time
	// last is when the last round was, in nanoseconds since 1970; 0 if it found no pods, and no other is planned.
	last atomic.Int64
}

// Kube's times, and its --terminated-pod-gc-threshold.
const (
	podRoundEvery     = 20 * time.Second
	nodeQuarantine    = 40 * time.Second
	terminatedPodsMax = 12500
)

var podsResource = ref.Pods.GroupResource()

func newPodCollector(h *part.Host) *podCollector {
	return &podCollector{Host: h, absent: map[string]time.Time{}}
}

func (p *podCollector) Observe(ev *watchcache.Event, need func(string)) {
	switch {
	case ev.Collection.Prefix() == ref.Nodes.Prefix:
		if ev.Type == watchcache.Deleted {
			need("")
		}
	case ev.Collection.Prefix() != ref.Pods.Prefix || ev.Type == watchcache.Deleted:
	case p.Now().UnixNano()-p.last.Load() >= int64(podRoundEvery):
		need("")
	case ev.Entry.Deleting && p.waits(ev.Entry):
		need(ev.Entry.Key())
	}
}

// waits reports whether a terminating pod on a missing node is still within its grace period.
func (p *podCollector) waits(e *watchcache.Entry) bool {
	node := nodeOf(e)
	return node != "" && field(e, "metadata.deletionGracePeriodSeconds") != "0" &&
		p.View.Collection(ref.Nodes.Prefix).Snapshot().Get("", node) == nil
}

func (p *podCollector) Sweep(need func(string)) { need("") }

func (p *podCollector) Reconcile(ctx context.Context, key string) error {
	pods := p.View.Collection(ref.Pods.Prefix).Snapshot()
	if key != "" {
		namespace, name, _ := strings.Cut(key, "/")
		if e := pods.Get(namespace, name); e != nil && e.Deleting && p.waits(e) {
			return p.remove(ctx, stray{e, nodeGone})
		}
		return nil
	}
	p.last.Store(p.Now().UnixNano())
	round := podRound{now: p.Now(), nodes: map[string]nodeState{}, absent: p.absent, terminated: terminatedPodsMax}
	p.View.Collection(ref.Nodes.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		round.nodes[e.Name] = stateOfNode(e)
		return true
	})
	pods.Scan("", "", func(e *watchcache.Entry) bool {
		round.pods = append(round.pods, e)
		return true
	})
	if len(round.pods) == 0 {
		clear(p.absent)
		p.last.Store(0)
		return nil
	}
	var errs []error
	for _, s := range round.strays() {
		if err := p.remove(ctx, s); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return control.Again(podRoundEvery)
}

// remove marks a pod as failed, so that the controller that counts it sees the outcome, and deletes it.
func (p *podCollector) remove(ctx context.Context, s stray) error {
	call, err := p.Verbs.Call(podsResource, s.pod.Namespace, s.pod.Name,
		control.ControllerUser("pod-garbage-collector"))
	if err != nil {
		return err
	}
	if !hasEnded(s.pod) {
		_, err = p.Verbs.Update(ctx, call.Under("status"),
			metav1.UpdateOptions{FieldManager: "kube-controller-manager"},
			func(pod object.Object) (object.Object, error) {
				if meta, _ := pod["metadata"].(object.Object); meta["uid"] != s.pod.UID {
					return nil, apierrors.NewNotFound(corev1.Resource("pods"), s.pod.Name)
				}
				fail(pod, s.because, p.Now())
				return pod, nil
			})
	}
	if err == nil {
		none, uid := int64(0), types.UID(s.pod.UID)
		_, err = p.Verbs.Delete(ctx, call,
			metav1.DeleteOptions{GracePeriodSeconds: &none, Preconditions: &metav1.Preconditions{UID: &uid}})
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, perhaps recreated
	}
	return err
}
