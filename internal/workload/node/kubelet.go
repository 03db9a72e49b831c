package node

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// kubeletLoop is the name of the loop that keeps nodes alive.
const kubeletLoop = "simulated-nodes"

// leaseDuration is the duration of a node's Lease; renewEvery is the time between its renewals.
const (
	leaseDuration = 40 * time.Second
	renewEvery    = 10 * time.Second
)

// Part declares the nodes of the settings and the loops of all simulated nodes.
func Part(s Settings, stages cluster.Stages) part.Part {
	return part.Part{
		Name: "simulated nodes",
		Loops: []part.Loop{
			{Name: kubeletLoop, Workers: 1, Pooled: true, New: func(h *part.Host) control.Reconciler {
				return cluster.Timed(h, &kubelets{Cluster: cluster.Kubelets(h), stages: stages})
			}},
			cluster.Loop(lifecycleController, 1, func(c *cluster.Cluster) control.Reconciler {
				l := newLifecycle(c)
				l.states = &sync.Map{}
				return l
			}),
			cluster.Loop(evictionController, 1, func(c *cluster.Cluster) control.Reconciler {
				return &eviction{Cluster: c}
			}),
		},
		Start: func(ctx context.Context, h *part.Host) error { return start(ctx, h, s, stages) },
		// A ready server must also keep its nodes running.
		Checks: func(h *part.Host) []front.Check {
			return []front.Check{{Name: "simulation", Run: h.Working, ReadyOnly: true}}
		},
	}
}

// kubelets runs the kubelets of all simulated nodes: it completes their status and renews their Leases. A key is the
// name of a node. If there are Stages for nodes, it only renews the Leases.
type kubelets struct {
	*cluster.Cluster
	stages cluster.Stages
}

// Requests implements control.Requester.
func (k *kubelets) Requests(need func(string)) {
	k.stages.OnChange(func() {
		k.View.Collection(cluster.Nodes.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
			if cluster.IsSimulated(e) {
				need(e.Name)
			}
			return true
		})
	})
}

func (k *kubelets) Observe(ev *watchcache.Event, need func(string)) {
	if cluster.Nodes.Is(ev) && ev.Type != watchcache.Deleted && cluster.IsSimulated(ev.Entry) &&
		(ev.Prev == nil || !cluster.IsSimulated(ev.Prev) || cluster.IsDown(ev.Prev) != cluster.IsDown(ev.Entry)) {
		need(ev.Entry.Name)
	}
}

func (k *kubelets) Reconcile(ctx context.Context, name string) error {
	e := k.View.Collection(cluster.Nodes.Prefix).Snapshot().Get("", name)
	if e == nil || e.Deleting || !cluster.IsSimulated(e) || cluster.IsDown(e) {
		return nil
	}
	own := k.Kubelet(name)
	if k.stages.Replace(cluster.NodeKind) {
		if err := hand(ctx, own, e); err != nil {
			return control.IgnoreNotFound(err)
		}
		return k.renew(ctx, own, e)
	}
	if value, _ := e.Field("status.nodeInfo.kubeletVersion"); value == "" {
		if err := adopt(ctx, own, name); err != nil {
			return err
		}
	}
	if err := k.recover(ctx, own, e); err != nil {
		return err
	}
	return k.renew(ctx, own, e)
}

func (k *kubelets) renew(ctx context.Context, own *cluster.Cluster, e *watchcache.Entry) error {
	if err := renew(ctx, own, e.Name, e.UID); err != nil {
		return control.IgnoreNotFound(err)
	}
	return control.Again(renewEvery)
}

// hand sets the phase of a node that became ready before there were Stages for nodes. kwok's Stages leave nodes in this
// phase, and select by it.
func hand(ctx context.Context, c *cluster.Cluster, e *watchcache.Entry) error {
	if phase, _ := e.Field("status.phase"); phase != "" {
		return nil
	}
	n := cluster.Nodes.Decode(c, e)
	if n == nil {
		return nil
	}
	if ready := condition(n, corev1.NodeReady); ready == nil || ready.Status != corev1.ConditionTrue {
		return nil
	}
	_, err := cluster.Nodes.UpdateStatus(ctx, c, n, func(n *corev1.Node) error {
		n.Status.Phase = corev1.NodeRunning
		return nil
	})
	return err
}

// adopt completes a node that a client has made.
func adopt(ctx context.Context, c *cluster.Cluster, name string) error {
	n := cluster.Nodes.Get(c, "", name)
	if n == nil {
		return nil
	}
	n, err := cluster.Nodes.Update(ctx, c, n, func(n *corev1.Node) error {
		complete(n, clientMade())
		return nil
	})
	if err != nil {
		return err
	}
	_, err = cluster.Nodes.UpdateStatus(ctx, c, n, func(n *corev1.Node) error {
		completeStatus(n, clientMade())
		stamp(n, c.Now())
		return nil
	})
	return err
}

// recover marks a node ready again after its kubelet was silent.
func (k *kubelets) recover(ctx context.Context, c *cluster.Cluster, e *watchcache.Entry) error {
	n := cluster.Nodes.Decode(c, e)
	if n == nil {
		return nil
	}
	silent := false
	for _, c := range n.Status.Conditions {
		silent = silent || c.Status == corev1.ConditionUnknown
	}
	if !silent {
		return nil
	}
	_, err := cluster.Nodes.UpdateStatus(ctx, c, n, func(n *corev1.Node) error {
		for i := range n.Status.Conditions {
			for _, well := range healthy {
				if was := &n.Status.Conditions[i]; was.Type == well.Type && was.Status == corev1.ConditionUnknown {
					*was = well
				}
			}
		}
		stamp(n, c.Now())
		return nil
	})
	return err
}

// stamp dates the conditions that have no date.
func stamp(n *corev1.Node, now time.Time) {
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		if c.LastTransitionTime.IsZero() {
			c.LastTransitionTime, c.LastHeartbeatTime = metav1.Time{Time: now}, metav1.Time{Time: now}
		}
	}
}

// renew renews the Lease of a node, or creates it.
func renew(ctx context.Context, c *cluster.Cluster, name, uid string) error {
	now := metav1.MicroTime{Time: c.Now()}
	err := cluster.Leases.Edit(ctx, c, cluster.Target{Namespace: corev1.NamespaceNodeLease, Name: name},
		func(raw object.Object) error {
			object.Child(raw, "spec")["renewTime"] = now.UTC().Format(metav1.RFC3339Micro)
			return nil
		})
	if !apierrors.IsNotFound(err) {
		return err
	}
	seconds := int32(leaseDuration / time.Second)
	_, err = cluster.Leases.Create(ctx, c, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: corev1.NamespaceNodeLease, Name: name, OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(uid),
			}},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now},
	})
	return err
}
