package cluster

import corev1 "k8s.io/api/core/v1"

// LocalScheduler is the scheduler of pods that are programs of users (package localpod). It keeps other schedulers
// away.
const LocalScheduler = "bowsprit-local-pods"

// IsLocal reports whether a pod is a program of a user, and so has no node. The fields that it reads are immutable.
func IsLocal(p *corev1.Pod) bool {
	return p.Spec.NodeName == "" && p.Spec.SchedulerName == LocalScheduler
}
