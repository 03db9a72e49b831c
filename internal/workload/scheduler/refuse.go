package scheduler

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// nominate records the nominated node of a pod, and returns the less important pods that lose their nomination. It
// needs the lock.
func (s *scheduler) nominate(p *podInfo, d decision) (outranked []*podInfo) {
	if !d.waits {
		delete(s.model.nominated, p.key())
	}
	if d.nominated == "" {
		return nil
	}
	for key, other := range s.model.nominated {
		if other.node == d.nominated && other.priority < p.priority {
			outranked = append(outranked, other)
			delete(s.model.nominated, key)
		}
	}
	p.node = d.nominated
	s.model.nominated[p.key()] = p
	return outranked
}

// refuse writes to a pod why it has no node, and deletes its victims.
func (s *scheduler) refuse(ctx context.Context, pod *corev1.Pod, d decision, outranked []*podInfo) error {
	condition := unschedulable(d.because)
	nominated := d.nominated
	if d.waits {
		nominated = pod.Status.NominatedNodeName
	}
	if was := cluster.Condition(&pod.Status, corev1.PodScheduled); was == nil || was.Message != condition.Message ||
		pod.Status.NominatedNodeName != nominated {
		_, err := cluster.Pods.UpdateStatus(ctx, s.Cluster, pod, func(p *corev1.Pod) error {
			cluster.SetCondition(p, condition, s.Now())
			p.Status.NominatedNodeName = nominated
			return nil
		})
		if err != nil {
			return control.IgnoreNotFound(err)
		}
	}
	s.Report(ctx, cluster.Event{
		About: cluster.Pods.Ref(pod), Type: corev1.EventTypeWarning, Reason: "FailedScheduling", Action: "Scheduling",
		Message: d.because,
	})
	for _, other := range outranked {
		if err := s.withdraw(ctx, other); err != nil {
			return err
		}
	}
	for _, victim := range d.victims {
		if err := s.evict(ctx, victim, pod, d.nominated); err != nil {
			return err
		}
	}
	return nil
}

// withdraw clears the nominated node of a pod, in favor of a more important one.
func (s *scheduler) withdraw(ctx context.Context, of *podInfo) error {
	pod := cluster.Pods.Get(s.Cluster, of.namespace, of.name)
	if pod == nil || string(pod.UID) != of.uid || pod.Status.NominatedNodeName == "" {
		return nil
	}
	_, err := cluster.Pods.UpdateStatus(ctx, s.Cluster, pod, func(p *corev1.Pod) error {
		p.Status.NominatedNodeName = ""
		return nil
	})
	return control.IgnoreNotFound(err)
}

func (s *scheduler) evict(ctx context.Context, victim *podInfo, by *corev1.Pod, node string) error {
	pod := cluster.Pods.Get(s.Cluster, victim.namespace, victim.name)
	if pod == nil || string(pod.UID) != victim.uid || pod.DeletionTimestamp != nil {
		return nil
	}
	_, err := cluster.Pods.UpdateStatus(ctx, s.Cluster, pod, func(p *corev1.Pod) error {
		cluster.SetCondition(p, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
			Message:            s.Component + ": preempting to accommodate a higher priority pod",
			ObservedGeneration: p.Generation,
		}, s.Now())
		return nil
	})
	if err == nil {
		err = cluster.Pods.Delete(ctx, s.Cluster, pod, metav1.DeleteOptions{})
	}
	if err == nil {
		s.Report(ctx, cluster.Event{
			About: cluster.Pods.Ref(pod), Type: corev1.EventTypeNormal, Reason: "Preempted", Action: "Preempting",
			Message: "Preempted by pod " + string(by.UID) + " on node " + node,
		})
	}
	return control.IgnoreNotFound(err)
}

func unschedulable(because string) corev1.PodCondition {
	return corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: because,
	}
}
