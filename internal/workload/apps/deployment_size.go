package apps

import (
	"cmp"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// size is the target size of a ReplicaSet.
type size struct {
	set      *appsv1.ReplicaSet
	replicas int32
	// always writes the size annotations even if the size stays.
	always bool
}

// rolls reports whether a Deployment replaces its pods step by step.
func rolls(d *appsv1.Deployment) bool {
	return d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType
}

// Bounds returns the number of pods by which a rollout may exceed the replicas (maxSurge), and by which the available
// pods may fall short of them (maxUnavailable).
func Bounds(d *appsv1.Deployment) (surge, unavailable int32) {
	if !rolls(d) || d.Spec.Strategy.RollingUpdate == nil {
		return 0, 0
	}
	resolve := func(v *intstr.IntOrString, up bool) int32 {
		n, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(v, intstr.FromInt32(0)),
			int(*d.Spec.Replicas), up)
		if err != nil { // validation rejects it
			return 0
		}
		return int32(n)
	}
	surge = resolve(d.Spec.Strategy.RollingUpdate.MaxSurge, true)
	unavailable = resolve(d.Spec.Strategy.RollingUpdate.MaxUnavailable, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1 // both percentages were rounded to 0, which would block the rollout
	}
	return surge, unavailable
}

// maxSurge returns by how many pods a rollout may exceed the replicas.
func maxSurge(d *appsv1.Deployment) int32 {
	surge, _ := Bounds(d)
	return surge
}

// maxUnavailable returns the number of pods that may be unavailable, capped at the replicas.
func maxUnavailable(d *appsv1.Deployment) int32 {
	_, unavailable := Bounds(d)
	return min(unavailable, *d.Spec.Replicas)
}

// specReplicas returns how many pods ReplicaSets are to have.
func specReplicas(sets []*appsv1.ReplicaSet) (n int32) {
	for _, s := range sets {
		n = sum(n, *s.Spec.Replicas)
	}
	return n
}

// sum adds numbers of pods. It stays within the type.
func sum(a, b int32) int32 {
	return int32(max(math.MinInt32, min(int64(a)+int64(b), math.MaxInt32)))
}

// availableReplicas returns how many available pods ReplicaSets have.
func availableReplicas(sets []*appsv1.ReplicaSet) (n int32) {
	for _, s := range sets {
		n = sum(n, s.Status.AvailableReplicas)
	}
	return n
}

// active returns the ReplicaSets with a nonzero size.
func active(sets []*appsv1.ReplicaSet) (out []*appsv1.ReplicaSet) {
	for _, s := range sets {
		if *s.Spec.Replicas > 0 {
			out = append(out, s)
		}
	}
	return out
}

// byCreation sorts ReplicaSets, the oldest first.
func byCreation(sets []*appsv1.ReplicaSet) { slices.SortStableFunc(sets, olderFirst) }

func olderFirst(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// sameTemplate reports whether two templates are equal apart from the hash label.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	delete(a.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(b.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return equality.Semantic.DeepEqual(a, b)
}

// CurrentReplicas returns how many replicas the ReplicaSet of the template may have while the others have theirs.
func CurrentReplicas(d *appsv1.Deployment, current *appsv1.ReplicaSet, all []*appsv1.ReplicaSet) int32 {
	want, have := *d.Spec.Replicas, *current.Spec.Replicas
	if !rolls(d) || have >= want {
		return want
	}
	room := sum(want, maxSurge(d)) - specReplicas(all)
	if room <= 0 {
		return have
	}
	return min(sum(have, room), want)
}

// shrinkOld returns the old ReplicaSets to scale down, with their new sizes: first by their unavailable pods, then as
// far as enough pods stay available. A set may occur twice. While a set reports more available pods than its size, it
// has not followed its last scaling, and nothing more is removed.
func shrinkOld(d *appsv1.Deployment, current *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) (out []size) {
	sets := active(old)
	least := *d.Spec.Replicas - maxUnavailable(d)
	missing := *current.Spec.Replicas - current.Status.AvailableReplicas
	most := sum(specReplicas(sets), *current.Spec.Replicas-least-missing)
	if len(sets) == 0 || most <= 0 {
		return nil
	}
	byCreation(sets)
	now := map[string]int32{}
	removed := int32(0)
	for _, s := range sets {
		now[s.Name] = *s.Spec.Replicas
		n := min(most-removed, *s.Spec.Replicas-s.Status.AvailableReplicas)
		if n < 0 {
			return out
		}
		if n > 0 {
			now[s.Name] -= n
			removed += n
			out = append(out, size{set: s, replicas: now[s.Name]})
		}
	}
	surplus := sum(availableReplicas(sets), current.Status.AvailableReplicas-least)
	for _, s := range sets {
		if n := min(now[s.Name], surplus); n > 0 {
			surplus -= n
			now[s.Name] -= n
			out = append(out, size{set: s, replicas: now[s.Name]})
		}
	}
	return out
}

// scaleAll returns the sizes of the ReplicaSets when the Deployment has got another size.
func scaleAll(d *appsv1.Deployment, current *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) (out []size) {
	if only := onlyActive(current, old); only != nil {
		return []size{{set: only, replicas: *d.Spec.Replicas}}
	}
	if current == nil && len(old) == 0 {
		return nil
	}
	if current != nil && saturated(d, current) {
		for _, s := range active(old) {
			out = append(out, size{set: s})
		}
		return out
	}
	if !rolls(d) {
		return nil
	}
	sets := slices.Clone(old)
	if current != nil {
		sets = append(sets, current)
	}
	return proportional(d, active(sets))
}

// onlyActive returns the ReplicaSet that alone is to have pods, the newest if none is; nil if several are.
func onlyActive(current *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) *appsv1.ReplicaSet {
	sets := active(old)
	if current != nil && *current.Spec.Replicas > 0 {
		sets = append(sets, current)
	}
	switch {
	case len(sets) == 1:
		return sets[0]
	case len(sets) > 1:
		return nil
	case current != nil || len(old) == 0:
		return current
	}
	return slices.MaxFunc(old, olderFirst)
}

// saturated reports whether a ReplicaSet has all pods of its Deployment, and they are available.
func saturated(d *appsv1.Deployment, set *appsv1.ReplicaSet) bool {
	desired, ok := count(set, desiredAnnotation)
	want := *d.Spec.Replicas
	return ok && *set.Spec.Replicas == want && desired == want && set.Status.AvailableReplicas == want
}

// proportional distributes a new size over several active ReplicaSets.
func proportional(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) (out []size) {
	allowed := int32(0)
	if *d.Spec.Replicas > 0 {
		allowed = sum(*d.Spec.Replicas, maxSurge(d))
	}
	add := allowed - specReplicas(sets)
	slices.SortStableFunc(sets, func(a, b *appsv1.ReplicaSet) int {
		age := olderFirst(a, b)
		if add > 0 {
			age = -age
		}
		return cmp.Or(cmp.Compare(*b.Spec.Replicas, *a.Spec.Replicas), age)
	})
	added := int32(0)
	for _, s := range sets {
		part := int32(0)
		if add != 0 {
			part = Portion(d, s, add, added)
			added += part
		}
		out = append(out, size{set: s, replicas: sum(*s.Spec.Replicas, part), always: true})
	}
	if len(out) > 0 && add != 0 {
		out[0].replicas = max(0, sum(out[0].replicas, add-added))
	}
	return out
}

// Portion returns the share of add for a ReplicaSet after added has been distributed.
func Portion(d *appsv1.Deployment, set *appsv1.ReplicaSet, add, added int32) int32 {
	if add == added {
		return 0
	}
	own := fraction(d, set)
	if add > 0 {
		return min(own, add-added)
	}
	return max(own, add-added)
}

// fraction returns by how much a ReplicaSet would grow in proportion to its Deployment.
func fraction(d *appsv1.Deployment, set *appsv1.ReplicaSet) int32 {
	have := *set.Spec.Replicas
	if *d.Spec.Replicas == 0 {
		return -have
	}
	before, ok := count(set, maxAnnotation)
	if !ok || before == 0 {
		if before = d.Status.Replicas; before == 0 {
			return 0
		}
	}
	now := math.Round(float64(have) * float64(sum(*d.Spec.Replicas, maxSurge(d))) / float64(before))
	return int32(max(0, min(now, math.MaxInt32))) - have
}
