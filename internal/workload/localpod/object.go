package localpod

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/localpod/callback"
)

const (
	// label marks local pods for a fast search.
	label = "bowsprit.dev/local-pod"
	// serverAnnotation names the server that has the route.
	serverAnnotation = "bowsprit.dev/local-pod-server"
	// nameSuffix ends the names of local pods.
	nameSuffix = "-as-pod"
)

// owner is the workload of a local pod.
type owner struct {
	reference metav1.OwnerReference
	namespace string
	template  corev1.PodTemplateSpec
}

// podOf returns the pod for one container of a workload. No node and no scheduler takes it.
func podOf(o *owner, container, server string) (*corev1.Pod, error) {
	containers := o.template.Spec.Containers
	at := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == container })
	if at < 0 {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s %s has no container %q", o.reference.Kind, o.reference.Name,
			container))
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.namespace, Name: o.reference.Name + nameSuffix,
			Labels: maps.Clone(o.template.Labels), Annotations: maps.Clone(o.template.Annotations),
			OwnerReferences: []metav1.OwnerReference{o.reference},
		},
		Spec: *o.template.Spec.DeepCopy(),
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Labels[label], pod.Annotations[serverAnnotation] = "", server
	s := &pod.Spec
	s.Containers, s.InitContainers = s.Containers[at:at+1], nil
	s.NodeName, s.SchedulerName, s.SchedulingGates = "", cluster.LocalScheduler, nil
	s.ResourceClaims, s.Containers[0].Resources.Claims = nil, nil
	return pod, nil
}

// setStatus writes a program's state to the status of its pod.
func setStatus(pod *corev1.Pod, state callback.State, now time.Time) {
	s, at := &pod.Status, metav1.NewTime(now)
	s.Phase = corev1.PodRunning
	if s.StartTime == nil {
		s.StartTime = &at
	}
	condition := func(kind corev1.PodConditionType, holds bool, reason string) {
		c := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: at}
		if !holds {
			c.Status, c.Reason = corev1.ConditionFalse, reason
		}
		i := slices.IndexFunc(s.Conditions, func(o corev1.PodCondition) bool { return o.Type == kind })
		switch {
		case i < 0:
			s.Conditions = append(s.Conditions, c)
		case s.Conditions[i].Status != c.Status:
			s.Conditions[i] = c
		}
	}
	condition(corev1.PodScheduled, true, "")
	condition(corev1.PodInitialized, true, "")
	condition(corev1.ContainersReady, state.Ready, "ContainersNotReady")
	condition(corev1.PodReady, state.Ready, "ContainersNotReady")
	started := metav1.NewTime(now)
	if len(s.ContainerStatuses) == 1 && s.ContainerStatuses[0].State.Running != nil {
		started = s.ContainerStatuses[0].State.Running.StartedAt
	}
	c := pod.Spec.Containers[0]
	s.ContainerStatuses = []corev1.ContainerStatus{{
		Name: c.Name, Image: c.Image, Ready: state.Ready, Started: &state.Started,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
	}}
}
