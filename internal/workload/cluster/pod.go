package cluster

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Tolerates reports whether a toleration is about a taint.
func Tolerates(t *corev1.Toleration, taint *corev1.Taint) bool {
	switch {
	case t.Effect != "" && t.Effect != taint.Effect, t.Key != "" && t.Key != taint.Key:
		return false
	case t.Operator == corev1.TolerationOpExists:
		return true
	case t.Operator == corev1.TolerationOpGt, t.Operator == corev1.TolerationOpLt:
		return compares(t, taint.Value)
	default:
		return (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Value == taint.Value
	}
}

// compares reports whether the value of a taint is a number above (Gt) or below (Lt) the number of a toleration. These
// operators exist only if the gate TaintTolerationComparisonOperators is on.
func compares(t *corev1.Toleration, value string) bool {
	has, err := strconv.ParseInt(value, 10, 64)
	bound, invalid := strconv.ParseInt(t.Value, 10, 64)
	if err != nil || invalid != nil {
		return false
	}
	if t.Operator == corev1.TolerationOpGt {
		return has > bound
	}
	return has < bound
}

// SetCondition sets a condition of a pod. LastTransitionTime changes only with the condition's status.
func SetCondition(p *corev1.Pod, c corev1.PodCondition, now time.Time) {
	c.LastTransitionTime = metav1.Time{Time: now}
	was := Condition(&p.Status, c.Type)
	if was == nil {
		p.Status.Conditions = append(p.Status.Conditions, c)
		return
	}
	if was.Status == c.Status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	*was = c
}

// Condition returns the condition of a type in a pod's status, or nil if there is none.
func Condition(s *corev1.PodStatus, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range s.Conditions {
		if c := &s.Conditions[i]; c.Type == kind {
			return c
		}
	}
	return nil
}

// nodeIndex names the index of pods by their node.
type nodeIndex struct{}

var byNode = watchcache.Index{Name: nodeIndex{}, Value: func(e *watchcache.Entry) string {
	name, _ := e.Field("spec.nodeName")
	return name
}}

// PodsOn returns the pods that are bound to a node.
func (c *Cluster) PodsOn(node string) []*corev1.Pod { return Pods.Find(c, byNode, node, "") }
