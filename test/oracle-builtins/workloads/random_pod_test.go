package workloads

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (c *schedulerCase) labels() map[string]string {
	out := map[string]string{"app": c.pick("a", "b")}
	if c.one(3) {
		out["tier"] = c.pick("front", "back")
	}
	return out
}

func (c *schedulerCase) selector() *metav1.LabelSelector {
	switch c.r.IntN(8) {
	case 0:
		return &metav1.LabelSelector{}
	case 1:
		return nil
	case 2:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpExists},
		}}
	default:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": c.pick("a", "b")}}
	}
}

func (c *schedulerCase) key() string {
	return c.pick(corev1.LabelHostname, corev1.LabelTopologyZone, "disk")
}

func (c *schedulerCase) term() corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{TopologyKey: c.key(), LabelSelector: c.selector()}
	switch c.r.IntN(5) {
	case 0:
		t.Namespaces = []string{c.pick("default", "kube-system")}
	case 1:
		t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{
			corev1.LabelMetadataName: c.pick("default", "kube-system"),
		}}
	}
	return t
}

func (c *schedulerCase) wishes() (out []corev1.WeightedPodAffinityTerm) {
	for range c.r.IntN(3) {
		out = append(out, corev1.WeightedPodAffinityTerm{Weight: int32(1 + c.r.IntN(100)), PodAffinityTerm: c.term()})
	}
	return out
}

func (c *schedulerCase) affinity() *corev1.Affinity {
	a := &corev1.Affinity{}
	if c.one(3) {
		a.PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: c.wishes()}
		if c.one(4) {
			a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{c.term()}
		}
	}
	if c.one(3) {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: c.wishes()}
		if c.one(6) {
			a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{c.term()}
		}
	}
	if c.one(4) {
		a.NodeAffinity = &corev1.NodeAffinity{}
		for range 1 + c.r.IntN(2) {
			a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(
				a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{
					Weight: int32(1 + c.r.IntN(100)), Preference: corev1.NodeSelectorTerm{
						MatchExpressions: []corev1.NodeSelectorRequirement{
							{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{c.pick("ssd", "hdd")}},
						},
					},
				})
		}
	}
	return a
}

func (c *schedulerCase) constraints() (out []corev1.TopologySpreadConstraint) {
	keys := []string{corev1.LabelHostname, corev1.LabelTopologyZone, "disk"}
	c.r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, key := range keys[:c.r.IntN(3)] {
		one := corev1.TopologySpreadConstraint{
			MaxSkew: int32(1 + c.r.IntN(3)), TopologyKey: key, LabelSelector: c.selector(),
			WhenUnsatisfiable: corev1.UnsatisfiableConstraintAction(
				c.pick("ScheduleAnyway", "ScheduleAnyway", "DoNotSchedule")),
		}
		if one.WhenUnsatisfiable == corev1.DoNotSchedule && c.one(3) {
			one.MinDomains = new(int32(1 + c.r.IntN(3)))
		}
		if c.one(3) {
			one.NodeAffinityPolicy = new(corev1.NodeInclusionPolicy(c.pick("Honor", "Ignore")))
		}
		if c.one(3) {
			one.NodeTaintsPolicy = new(corev1.NodeInclusionPolicy(c.pick("Honor", "Ignore")))
		}
		if c.one(4) && one.LabelSelector != nil && one.LabelSelector.MatchExpressions == nil {
			one.MatchLabelKeys = []string{"tier"}
		}
		out = append(out, one)
	}
	return out
}

func (c *schedulerCase) pod(name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: c.labels()}}
	for i := range 1 + c.r.IntN(2) {
		container := corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "image"}
		requests := corev1.ResourceList{}
		if c.one(2) {
			requests[corev1.ResourceCPU] = apiresource.MustParse(c.pick("0", "50m", "300m", "1"))
		}
		if c.one(2) {
			requests[corev1.ResourceMemory] = apiresource.MustParse(c.pick("0", "64Mi", "512Mi", "1Gi"))
		}
		container.Resources.Requests = requests
		if c.one(10) && i == 0 {
			port := int32(c.r.IntN(2) + 8000)
			container.Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port}}
		}
		if p.Spec.Containers = append(p.Spec.Containers, container); c.one(6) {
			container.Name, container.Ports = fmt.Sprintf("i%d", i), nil
			p.Spec.InitContainers = append(p.Spec.InitContainers, container)
		}
	}
	if c.ranked {
		c.rank(p)
	}
	if c.stored && c.one(2) {
		c.claim(p)
	}
	p.Spec.Affinity = c.affinity()
	if c.one(3) {
		p.Spec.TopologySpreadConstraints = c.constraints()
	}
	if c.one(8) {
		p.Spec.NodeSelector = map[string]string{"disk": c.pick("ssd", "hdd")}
	}
	if c.one(3) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: c.pick("k", "l", ""), Operator: corev1.TolerationOpExists,
			Effect: corev1.TaintEffect(c.pick("", "NoSchedule", "PreferNoSchedule"))}}
	}
	if c.set != nil && c.one(2) {
		p.Labels["app"] = "a"
		p.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(c.set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")),
		}
	}
	return p
}
