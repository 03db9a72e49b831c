// Package disruption implements Kubernetes' disruption controller for a server that simulates workloads: it computes
// how many pods of a PodDisruptionBudget may be evicted. The eviction itself is a verb of pods.
//
// budget.go is pure: the numbers of a budget's status.
package disruption

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// Part brings the controller.
func Part(shared *cluster.Shared) part.Part {
	return part.Part{Name: "controller of disruption budgets", Loops: []part.Loop{
		cluster.Loop("disruption-controller", 1, func(c *cluster.Cluster) control.Reconciler {
			c.Component = "controllermanager"
			return &budgets{c, shared.Of(c.Host)}
		}),
	}}
}

// budgets reconciles budgets. Its keys are "namespace/name" of budgets, and "namespace/name/pod" of pods that may have
// an outdated condition DisruptionTarget, or two budgets.
type budgets struct {
	*cluster.Cluster
	index *cluster.Index
}

func (b *budgets) Observe(ev *watchcache.Event, need func(string)) {
	switch {
	case cluster.PodDisruptionBudgets.Is(ev):
		need(ev.Entry.Key())
	case cluster.Pods.Is(ev):
		of := b.of(ev.Entry.Namespace, ev.Entry.Labels)
		if ev.Prev != nil {
			for _, name := range b.of(ev.Entry.Namespace, ev.Prev.Labels) {
				need(ev.Entry.Namespace + "/" + name)
			}
		}
		for _, name := range of {
			need(ev.Entry.Namespace + "/" + name)
		}
		if ev.Type != watchcache.Deleted && (len(of) > 1 || marked(ev.Entry)) {
			need(ev.Entry.Key() + "/pod")
		}
	}
}

// marked reports whether a pod has the condition DisruptionTarget.
func marked(e *watchcache.Entry) bool {
	return bytes.Contains(e.Peek(), []byte(`"`+corev1.DisruptionTarget+`"`))
}

// of returns the names of the budgets that labels of a pod fall under.
func (b *budgets) of(namespace string, of map[string]string) (names []string) {
	for _, budget := range cluster.PodDisruptionBudgets.ReadAll(b.index, namespace) {
		s, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err == nil && s.Matches(labels.Set(of)) {
			names = append(names, budget.Name)
		}
	}
	return names
}

func (b *budgets) Reconcile(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	if pod, ok := strings.CutSuffix(name, "/pod"); ok {
		return b.lookAtPod(ctx, namespace, pod)
	}
	was := cluster.PodDisruptionBudgets.Read(b.index, namespace, name)
	if was == nil {
		return nil
	}
	err := b.count(ctx, was)
	if _, later := err.(control.Again); err == nil || later || apierrors.IsConflict(err) {
		return cluster.Soon(err)
	}
	return cluster.Soon(b.forbid(ctx, was, err))
}

// count writes the current status of a budget.
func (b *budgets) count(ctx context.Context, was *policyv1.PodDisruptionBudget) error {
	about := cluster.PodDisruptionBudgets.Ref(was)
	selector, err := metav1.LabelSelectorAsSelector(was.Spec.Selector)
	if err != nil {
		b.Warning(ctx, about, "NoPods", "Failed to get pods: %v", err)
		return err
	}
	pods := cluster.Pods.Selected(b.index, was.Namespace, selector)
	if len(pods) == 0 {
		b.Normal(ctx, about, "NoPods", "No matching pods found")
	}
	expected, unmanaged := int32(len(pods)), false
	if NeedsScale(was) {
		expected, unmanaged, err = b.expected(ctx, pods)
	}
	var desired int32
	if err == nil {
		desired, err = Desired(was, expected)
	}
	if err != nil {
		b.Warning(ctx, about, "CalculateExpectedPodCountFailed",
			"Failed to calculate the number of expected pods: %v", err)
		return err
	}
	if unmanaged {
		b.Warning(ctx, about, "UnmanagedPods", "Pods selected by this PodDisruptionBudget (selector: %v) were found "+
			"to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in "+
			"undefined behavior. To account for these pods please set \".spec.minAvailable\" field of the PDB to an "+
			"integer value.", was.Spec.Selector)
	}
	now := b.Now()
	disrupted, until, late := Disrupted(was, pods, now)
	for _, p := range late {
		b.Warning(ctx, cluster.Pods.Ref(p), "NotDeleted",
			"Pod was expected by PDB %s/%s to be deleted but it wasn't", was.Namespace, was.Namespace)
	}
	next := was.DeepCopy()
	if Count(next, Healthy(pods, disrupted, now), desired, expected, disrupted) {
		// An eviction in the meantime must not be lost: it makes this write a Conflict.
		if _, err := cluster.PodDisruptionBudgets.ReplaceStatus(ctx, b.Cluster, next); err != nil {
			return control.IgnoreNotFound(err)
		}
	}
	if !until.IsZero() {
		return control.Again(max(1, until.Sub(now)+1))
	}
	return nil
}

// forbid makes a budget allow no disruption, because its numbers are unknown.
func (b *budgets) forbid(ctx context.Context, was *policyv1.PodDisruptionBudget, why error) error {
	next := was.DeepCopy()
	next.Status.DisruptionsAllowed = 0
	meta.SetStatusCondition(&next.Status.Conditions, metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
		Reason: policyv1.SyncFailedReason, Message: why.Error(), ObservedGeneration: next.Status.ObservedGeneration,
	})
	_, err := cluster.PodDisruptionBudgets.ReplaceStatus(ctx, b.Cluster, next)
	return control.IgnoreNotFound(err)
}

// expected returns the total replicas of the pods' controllers, and whether some pods have no controller.
func (b *budgets) expected(ctx context.Context, pods []*corev1.Pod) (n int32, unmanaged bool, err error) {
	scales := map[types.UID]int32{}
	for _, p := range pods {
		ref := metav1.GetControllerOfNoCopy(p)
		if ref == nil {
			unmanaged = true
			continue
		}
		if _, known := scales[ref.UID]; known {
			continue
		}
		s, err := b.scale(ctx, ref, p.Namespace)
		if err != nil {
			return 0, unmanaged, err
		}
		if s == nil {
			return 0, unmanaged, fmt.Errorf("found no controllers for pod %q", p.Name)
		}
		scales[s.UID] = s.Spec.Replicas
	}
	return total(scales), unmanaged, nil
}

// scale returns the scale of a pod's controller, or of its Deployment if there is one; nil if it does not exist.
func (b *budgets) scale(
	ctx context.Context, ref *metav1.OwnerReference, namespace string,
) (*autoscalingv1.Scale, error) {
	if isOne(ref, cluster.ReplicaSets.Kind) {
		if set := cluster.ReplicaSets.Read(b.index, namespace, ref.Name); set != nil && set.UID == ref.UID {
			if above := metav1.GetControllerOfNoCopy(set); above != nil && isOne(above, cluster.Deployments.Kind) {
				if s, err := b.scaleOf(ctx, above, namespace); err != nil || s != nil {
					return s, err
				}
			}
		}
	}
	return b.scaleOf(ctx, ref, namespace)
}

// isOne reports whether a reference is to a kind of the group apps, under its name of today or of old.
func isOne(ref *metav1.OwnerReference, kind string) bool {
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	return ref.Kind == kind && slices.Contains([]string{"apps", "extensions"}, group)
}

func (b *budgets) scaleOf(
	ctx context.Context, ref *metav1.OwnerReference, namespace string,
) (*autoscalingv1.Scale, error) {
	of := cluster.Scalable{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: namespace, Name: ref.Name}
	s, err := b.Scale(ctx, of)
	if err != nil || s == nil || s.UID != ref.UID {
		return nil, err
	}
	return s, nil
}

// lookAtPod resets the condition of a disrupted pod that was not deleted, and reports a pod with two budgets.
func (b *budgets) lookAtPod(ctx context.Context, namespace, name string) error {
	p := cluster.Pods.Read(b.index, namespace, name)
	if p == nil {
		return nil
	}
	if of := b.of(namespace, p.Labels); len(of) > 1 {
		b.Warning(ctx, cluster.Pods.Ref(p), "MultiplePodDisruptionBudgets",
			"Pod %q/%q matches multiple PodDisruptionBudgets.  Chose %q arbitrarily.", namespace, name, of[0])
	}
	after, ok := stale(p, b.Now())
	if !ok {
		return nil
	}
	if after > 0 {
		return control.Again(after)
	}
	_, err := cluster.Pods.UpdateStatus(ctx, b.Cluster, p, func(now *corev1.Pod) error {
		if left, ok := stale(now, b.Now()); !ok || left > 0 {
			return nil
		}
		cluster.SetCondition(now, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionFalse,
		}, b.Now())
		return nil
	})
	return control.IgnoreNotFound(err)
}
