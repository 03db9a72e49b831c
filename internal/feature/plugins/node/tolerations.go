package node

import corev1 "k8s.io/api/core/v1"

// mergeTolerations removes tolerations that another one covers; of equal ones the first stays. Its cost is linear in
// their number.
func mergeTolerations(all []corev1.Toleration) []corev1.Toleration {
	later, redundant := coverage{}, make([]bool, len(all))
	for i := len(all) - 1; i >= 0; i-- {
		t := comparableOf(all[i])
		redundant[i] = later.covers(t, true)
		later.add(t)
	}
	var out []corev1.Toleration
	kept, equal := coverage{}, map[toleration]bool{}
	for i, t := range all {
		c := comparableOf(t)
		if redundant[i] || equal[c] || kept.covers(c, false) {
			continue
		}
		out = append(out, t)
		kept.add(c)
		equal[c] = true
	}
	return out
}

// toleration is a toleration that can be compared.
type toleration struct {
	key, value string
	operator   corev1.TolerationOperator
	effect     corev1.TaintEffect
	limited    bool // to a number of seconds
	seconds    int64
}

func comparableOf(t corev1.Toleration) toleration {
	c := toleration{key: t.Key, value: t.Value, operator: t.Operator, effect: t.Effect}
	if t.TolerationSeconds != nil {
		c.limited, c.seconds = true, *t.TolerationSeconds
	}
	return c
}

// outlasts reports whether t tolerates a NoExecute taint at least as long as other.
func (t toleration) outlasts(other toleration) bool {
	return !t.limited || other.limited && t.seconds >= other.seconds
}

// group has the fields that a toleration needs to cover another one, apart from the time. value is empty if exists.
type group struct {
	key, value string
	exists     bool
	effect     corev1.TaintEffect
}

// coverage holds up to two tolerations of each group, the longest first. They differ.
type coverage map[group][]toleration

// add adds a toleration. Tolerations with other operators than Exists and Equal cover nothing else.
func (c coverage) add(t toleration) {
	g := group{key: t.key, effect: t.effect}
	switch t.operator {
	case corev1.TolerationOpExists:
		g.exists = true
	case corev1.TolerationOpEqual, "":
		g.value = t.value
	default:
		return
	}
	top := c[g]
	switch {
	case len(top) == 0:
		c[g] = []toleration{t}
	case t == top[0]:
	case !top[0].outlasts(t):
		c[g] = []toleration{t, top[0]}
	case len(top) == 1 || !top[1].outlasts(t):
		c[g] = []toleration{top[0], t}
	}
}

// covers reports whether a toleration tolerates everything that t tolerates. With others, it is not equal to t.
func (c coverage) covers(t toleration, others bool) bool {
	groups := []group{
		{key: t.key, effect: t.effect, exists: true}, {key: t.key, exists: true},
		{effect: t.effect, exists: true}, {exists: true},
	}
	if t.operator == corev1.TolerationOpEqual {
		groups = append(groups, group{key: t.key, effect: t.effect, value: t.value}, group{key: t.key, value: t.value})
	}
	for _, g := range groups {
		for _, by := range c[g] {
			if others && by == t {
				continue
			}
			if by.effect != corev1.TaintEffectNoExecute || by.outlasts(t) {
				return true
			}
		}
	}
	return false
}
