package replica

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ByRemoval sorts pods by deletion order: unassigned before assigned, by phase, not ready before ready, most restarts
// first, youngest first.
func ByRemoval(pods []*corev1.Pod) {
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(byProgress(a, b), byAge(readySince(a), readySince(b)), byRestarts(a, b),
			byAge(a.CreationTimestamp.Time, b.CreationTimestamp.Time))
	})
}

// ByRemovalAmong is ByRemoval with the related pods on the nodes taken into account: between equally far pods, the
// cheaper one to delete goes first (the annotation controller.kubernetes.io/pod-deletion-cost), then the one on a node
// with more related pods. Ages with the same logarithm count as equal.
func ByRemovalAmong(pods, related []*corev1.Pod, now time.Time) {
	onNode := map[string]int{}
	for _, p := range related {
		if IsActive(p) {
			onNode[p.Spec.NodeName]++
		}
	}
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(
			byProgress(a, b),
			cmp.Compare(deletionCost(a), deletionCost(b)),
			cmp.Compare(onNode[b.Spec.NodeName], onNode[a.Spec.NodeName]),
			byLogarithm(a, b, readySince(a), readySince(b), now),
			byRestarts(a, b),
			byLogarithm(a, b, a.CreationTimestamp.Time, b.CreationTimestamp.Time, now),
		)
	})
}

// byProgress sorts pods that are less far first.
func byProgress(a, b *corev1.Pod) int {
	return cmp.Or(
		compareBool(a.Spec.NodeName != "", b.Spec.NodeName != ""),
		cmp.Compare(phaseRank(a), phaseRank(b)),
		compareBool(IsReady(a), IsReady(b)),
	)
}

func phaseRank(p *corev1.Pod) int {
	switch p.Status.Phase {
	case corev1.PodUnknown:
		return 1
	case corev1.PodRunning:
		return 2
	}
	return 0
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// deletionCost returns the value of the annotation, or 0 if it is missing or invalid.
func deletionCost(p *corev1.Pod) int32 {
	text := p.Annotations[corev1.PodDeletionCost]
	if len(text) > 1 && (text[0] == '+' || text[0] == '0') {
		return 0 // Kubernetes requires the canonical form
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

// readySince returns the time since which a pod is ready, zero if it is not.
func readySince(p *corev1.Pod) time.Time {
	if !IsReady(p) {
		return time.Time{}
	}
	return Condition(p, corev1.PodReady).LastTransitionTime.Time
}

// byAge sorts the younger one first; the zero time is youngest.
func byAge(a, b time.Time) int {
	switch {
	case a.Equal(b):
		return 0
	case a.IsZero():
		return -1
	case b.IsZero():
		return 1
	}
	return b.Compare(a)
}

// byLogarithm is byAge where ages with the same logarithm are equal; then the uid decides.
func byLogarithm(a, b *corev1.Pod, since, other, now time.Time) int {
	switch {
	case since.Equal(other):
		return 0
	case since.IsZero() || other.IsZero():
		return byAge(since, other)
	}
	return cmp.Or(cmp.Compare(logarithm(now.Sub(since)), logarithm(now.Sub(other))), cmp.Compare(a.UID, b.UID))
}

func logarithm(d time.Duration) int64 {
	if d <= 0 {
		return -1
	}
	return int64(math.Log2(float64(d)))
}

// byRestarts sorts pods with the most restarts first, of containers and then of sidecars.
func byRestarts(a, b *corev1.Pod) int {
	aRegular, aSidecar := restarts(a)
	bRegular, bSidecar := restarts(b)
	return cmp.Or(cmp.Compare(bRegular, aRegular), cmp.Compare(bSidecar, aSidecar))
}

func restarts(p *corev1.Pod) (regular, sidecar int32) {
	for _, s := range p.Status.ContainerStatuses {
		regular = max(regular, s.RestartCount)
	}
	for _, s := range p.Status.InitContainerStatuses {
		if IsSidecar(p, s.Name) {
			sidecar = max(sidecar, s.RestartCount)
		}
	}
	return regular, sidecar
}

// IsSidecar reports whether an init container of a pod keeps running beside its containers.
func IsSidecar(p *corev1.Pod, name string) bool {
	return slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}
