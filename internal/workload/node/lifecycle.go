package node

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// lifecycleController is kube's name.
const lifecycleController = "node-lifecycle-controller"

// grace is kube's --node-monitor-grace-period, startup its --node-startup-grace-period.
const (
	grace   = 50 * time.Second
	startup = 60 * time.Second
)

// lifecycle marks the conditions of nodes with silent kubelets as unknown, taints nodes by their conditions, and
// records events about added and removed nodes. A key is the name of a node. Source: pkg/controller/nodelifecycle of
// Kubernetes 1.36.
//
// A simulated node is alive, unless it simulates an outage, whatever its Lease says: when a test moves the clock, the
// Lease is briefly outdated.
type lifecycle struct {
	*cluster.Cluster
	// states holds the uids of reported nodes, by name; nil if nodes are not reported.
	states *sync.Map
}

func newLifecycle(c *cluster.Cluster) *lifecycle {
	own := *c
	own.User, own.Component = control.ControllerUser("node-controller"), "node-controller" // as in Kubernetes
	return &lifecycle{Cluster: &own}
}

func (l *lifecycle) Observe(ev *watchcache.Event, need func(string)) {
	if cluster.Nodes.Is(ev) {
		need(ev.Entry.Name)
	}
}

// meet records an event about a new node, or about a removed one if uid is "". After a restart all nodes are new.
func (l *lifecycle) meet(ctx context.Context, name, uid string) {
	if l.states == nil {
		return
	}
	about := corev1.ObjectReference{APIVersion: "v1", Kind: cluster.Nodes.Kind, Name: name}
	if uid != "" {
		if _, met := l.states.LoadOrStore(name, uid); !met {
			about.UID = types.UID(uid)
			l.Normal(ctx, about, "RegisteredNode", "Node %s event: Registered Node %s in Controller", name, name)
		}
		return
	}
	if was, met := l.states.LoadAndDelete(name); met {
		about.UID = types.UID(was.(string))
		l.Normal(ctx, about, "RemovingNode", "Node %s event: Removing Node %s from Controller", name, name)
	}
}

func (l *lifecycle) Reconcile(ctx context.Context, name string) error {
	e := l.View.Collection(cluster.Nodes.Prefix).Snapshot().Get("", name)
	if e == nil {
		l.meet(ctx, name, "")
		return nil
	}
	l.meet(ctx, name, e.UID)
	n := cluster.Nodes.Decode(l.Cluster, e)
	if n == nil || n.DeletionTimestamp != nil {
		return nil
	}
	var next error
	if !cluster.IsSimulated(e) || cluster.IsDown(e) {
		silent, left := l.silence(n)
		was := condition(n, corev1.NodeReady)
		wasReady := was != nil && was.Status == corev1.ConditionTrue
		if silent && l.unknown(n) {
			made, err := cluster.Nodes.UpdateStatus(ctx, l.Cluster, n, func(n *corev1.Node) error {
				l.unknown(n)
				return nil
			})
			if err != nil {
				return control.IgnoreNotFound(err)
			}
			if n = made; wasReady {
				l.Normal(ctx, cluster.Nodes.Ref(n), "NodeNotReady", "Node %s status is now: NodeNotReady", n.Name)
			}
		}
		if next = control.Again(left); silent {
			next = control.Again(grace) // the renewal of a Lease causes no event here
		}
	}
	if err := l.amend(ctx, n); err != nil {
		return control.IgnoreNotFound(err)
	}
	// A kubelet that itself reports its node as not ready still manages its pods.
	if c := condition(n, corev1.NodeReady); c != nil && c.Status == corev1.ConditionUnknown {
		if err := l.markPods(ctx, n); err != nil {
			return err
		}
	}
	return next
}

// silence reports whether a node's kubelet has been silent for too long, and if not, how long it may be yet.
func (l *lifecycle) silence(n *corev1.Node) (silent bool, left time.Duration) {
	lastSeen, patience := n.CreationTimestamp.Time, startup
	if c := condition(n, corev1.NodeReady); c != nil && c.LastHeartbeatTime.After(lastSeen) {
		lastSeen, patience = c.LastHeartbeatTime.Time, grace
	}
	if lease := cluster.Leases.Get(l.Cluster, corev1.NamespaceNodeLease, n.Name); lease != nil &&
		lease.Spec.RenewTime != nil && lease.Spec.RenewTime.After(lastSeen) {
		lastSeen, patience = lease.Spec.RenewTime.Time, grace
	}
	left = patience - l.Since(lastSeen)
	return left <= 0, left
}

// unknown sets the conditions that kubelets report to Unknown, and reports whether any changed.
func (l *lifecycle) unknown(n *corev1.Node) (changed bool) {
	now := metav1.Time{Time: l.Now()}
	for _, kind := range []corev1.NodeConditionType{
		corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure,
	} {
		switch c := condition(n, kind); {
		case c == nil:
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
				Type: kind, Status: corev1.ConditionUnknown, Reason: "NodeStatusNeverUpdated",
				Message: "Kubelet never posted node status.", LastHeartbeatTime: n.CreationTimestamp,
				LastTransitionTime: now,
			})
			changed = true
		case c.Status != corev1.ConditionUnknown:
			c.Status, c.Reason = corev1.ConditionUnknown, "NodeStatusUnknown"
			c.Message, c.LastTransitionTime = "Kubelet stopped posting node status.", now
			changed = true
		}
	}
	return changed
}

// amend sets the taints for a node's conditions, and copies new labels to their deprecated names.
func (l *lifecycle) amend(ctx context.Context, n *corev1.Node) error {
	_, changed := tainted(n, l.Now())
	if labels := oldLabels(n); !changed && len(labels) == 0 {
		return nil
	}
	_, err := cluster.Nodes.Update(ctx, l.Cluster, n, func(n *corev1.Node) error {
		n.Spec.Taints, _ = tainted(n, l.Now())
		for label, value := range oldLabels(n) {
			n.Labels[label] = value
		}
		return nil
	})
	return err
}

// oldLabels returns the deprecated OS and architecture labels of a node that differ from the current ones.
func oldLabels(n *corev1.Node) map[string]string {
	out := map[string]string{}
	for label, of := range map[string]string{
		"beta.kubernetes.io/os": corev1.LabelOSStable, "beta.kubernetes.io/arch": corev1.LabelArchStable,
	} {
		value, ok := n.Labels[of]
		if old, there := n.Labels[label]; ok && (!there || old != value) {
			out[label] = value
		}
	}
	return out
}

// isManaged reports whether the controller manages a taint, whatever its value.
func isManaged(t *corev1.Taint) bool {
	switch t.Key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable:
		return t.Effect != corev1.TaintEffectPreferNoSchedule
	case corev1.TaintNodeUnschedulable, corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure,
		corev1.TaintNodePIDPressure, corev1.TaintNodeNetworkUnavailable:
		return t.Effect == corev1.TaintEffectNoSchedule
	}
	return false
}

// tainted returns the taints that a node is to have, and whether it has others.
func tainted(n *corev1.Node, now time.Time) (out []corev1.Taint, changed bool) {
	wanted := wantedTaints(n)
	for _, have := range n.Spec.Taints {
		at := slices.IndexFunc(wanted, func(t corev1.Taint) bool { return t.MatchTaint(&have) })
		switch {
		case at >= 0:
			wanted = slices.Delete(wanted, at, at+1)
			out = append(out, have)
		case isManaged(&have):
			changed = true
		default:
			out = append(out, have)
		}
	}
	for _, t := range wanted {
		t.TimeAdded = &metav1.Time{Time: now}
		out, changed = append(out, t), true
	}
	return out, changed
}

func wantedTaints(n *corev1.Node) (out []corev1.Taint) {
	add := func(key string, effects ...corev1.TaintEffect) {
		for _, effect := range effects {
			out = append(out, corev1.Taint{Key: key, Effect: effect})
		}
	}
	for _, c := range n.Status.Conditions {
		switch is := c.Status; {
		case c.Type == corev1.NodeReady && is == corev1.ConditionFalse:
			add(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)
		case c.Type == corev1.NodeReady && is == corev1.ConditionUnknown:
			add(corev1.TaintNodeUnreachable, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)
		case is != corev1.ConditionTrue:
		case c.Type == corev1.NodeMemoryPressure:
			add(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)
		case c.Type == corev1.NodeDiskPressure:
			add(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule)
		case c.Type == corev1.NodePIDPressure:
			add(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule)
		case c.Type == corev1.NodeNetworkUnavailable:
			add(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)
		}
	}
	if n.Spec.Unschedulable {
		add(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)
	}
	return out
}

// markPods marks the pods on a node that is not ready as not ready.
func (l *lifecycle) markPods(ctx context.Context, n *corev1.Node) error {
	for _, pod := range l.PodsOn(n.Name) {
		if !podReady(pod) {
			continue
		}
		_, err := cluster.Pods.UpdateStatus(ctx, l.Cluster, pod, func(p *corev1.Pod) error {
			for i := range p.Status.Conditions {
				if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					c.Status, c.LastTransitionTime = corev1.ConditionFalse, metav1.Time{Time: l.Now()}
				}
			}
			return nil
		})
		if control.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			l.Warning(ctx, cluster.Pods.Ref(pod), "NodeNotReady", "Node is not ready")
		}
	}
	return nil
}

func podReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
