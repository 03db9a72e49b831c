package autoscale

import (
	"fmt"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// Without behavior a target at most doubles, or has four replicas.
func TestLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limits  limits
		desired int32
		want    string
	}{
		{limits{1, 10, 3}, 5, "5 DesiredWithinRange"},
		{limits{1, 10, 3}, 7, "6 ScaleUpLimit"},
		{limits{1, 10, 1}, 9, "4 ScaleUpLimit"},
		{limits{1, 10, 6}, 40, "10 TooManyReplicas"},
		{limits{2, 10, 6}, 0, "2 TooFewReplicas"},
	} {
		n, why := c.limits.apply(c.desired)
		if got := fmt.Sprint(n, " ", why.reason); got != c.want {
			t.Errorf("%+v, %d: %s, want %s", c.limits, c.desired, got, c.want)
		}
	}
}

func behavior(edit func(up, down *autoscalingv2.HPAScalingRules)) rules {
	b := &autoscalingv2.HorizontalPodAutoscalerBehavior{
		ScaleUp: &autoscalingv2.HPAScalingRules{}, ScaleDown: &autoscalingv2.HPAScalingRules{},
	}
	edit(b.ScaleUp, b.ScaleDown)
	return rulesOf(b)
}

func policy(kind autoscalingv2.HPAScalingPolicyType, value, seconds int32) autoscalingv2.HPAScalingPolicy {
	return autoscalingv2.HPAScalingPolicy{Type: kind, Value: value, PeriodSeconds: seconds}
}

// TestPolicies checks that policies limit the changes within their period.
func TestPolicies(t *testing.T) {
	t.Parallel()
	const pods, percent = autoscalingv2.PodsScalingPolicy, autoscalingv2.PercentScalingPolicy
	least, disabled := autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect
	type scaling = autoscalingv2.HPAScalingRules
	ten := limits{1, 50, 10}
	few := []autoscalingv2.HPAScalingPolicy{policy(pods, 2, 60), policy(percent, 50, 60)}
	for _, c := range []struct {
		name    string
		edit    func(up, down *scaling)
		limits  limits
		done    []sample
		desired int32
		want    string
	}{
		{"the usual way up", func(_, _ *scaling) {}, ten, nil, 40, "20 ScaleUpLimit"},
		{"the usual way up of few", func(_, _ *scaling) {}, limits{1, 50, 1}, nil, 40, "5 ScaleUpLimit"},
		{"the usual way down", func(_, _ *scaling) {}, limits{2, 50, 10}, nil, 1, "2 TooFewReplicas"},
		{"what changes most", func(up, _ *scaling) { up.Policies = few }, ten, nil, 40, "15 ScaleUpLimit"},
		{"what changes least", func(up, _ *scaling) { up.Policies, up.SelectPolicy = few, &least }, ten, nil,
			40, "12 ScaleUpLimit"},
		{"down, most", func(_, down *scaling) { down.Policies = few }, ten, nil, 1, "5 ScaleDownLimit"},
		{"down, least", func(_, down *scaling) { down.Policies, down.SelectPolicy = few, &least }, ten, nil,
			1, "8 ScaleDownLimit"},
		{"never down", func(_, down *scaling) { down.SelectPolicy = &disabled }, ten, nil, 1,
			"10 ScaleDownLimit"},
		{"within", func(up, _ *scaling) { up.Policies = few }, ten, nil, 14, "14 DesiredWithinRange"},
		{"more than there may be", func(up, _ *scaling) { up.Policies = few }, limits{1, 13, 10}, nil, 14,
			"13 TooManyReplicas"},
		{"after a step up", func(up, _ *scaling) { up.Policies = few }, ten,
			[]sample{{4, noon.Add(-30 * time.Second)}, {3, noon.Add(-2 * time.Minute)}}, 40, "10 ScaleUpLimit"},
		{"after a step down", func(up, _ *scaling) { up.Policies = few }, ten,
			[]sample{{-4, noon.Add(-30 * time.Second)}}, 40, "21 ScaleUpLimit"},
		{"a part of few rounds up", func(up, _ *scaling) {
			up.Policies = []autoscalingv2.HPAScalingPolicy{policy(percent, 10, 60)}
		}, limits{1, 50, 1}, nil, 4, "2 ScaleUpLimit"},
	} {
		n, why := c.limits.applyBy(behavior(c.edit), &history{done: c.done}, c.desired, noon)
		if got := fmt.Sprint(n, " ", why.reason); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestWindows checks that a target scales down to the highest proposal of the last five minutes, or with behavior of
// its windows.
func TestWindows(t *testing.T) {
	t.Parallel()
	l := limits{1, 100, 10}
	h := &history{}
	h.begin(10, noon)
	h.begin(3, noon) // so the next one is not the first
	for _, c := range []struct {
		after   time.Duration
		desired int32
		want    string
	}{
		{time.Minute, 4, "10 ScaleDownStabilized DesiredWithinRange"},
		{2 * time.Minute, 6, "10 ScaleDownStabilized DesiredWithinRange"},
		{5*time.Minute + time.Second, 3, "6 ScaleDownStabilized DesiredWithinRange"},
		{7*time.Minute + time.Second, 3, "3 ReadyForNewScale DesiredWithinRange"},
	} {
		n, able, limited := h.settle(l, c.desired, noon.Add(c.after))
		if got := fmt.Sprint(n, " ", able.reason, " ", limited.reason); got != c.want {
			t.Errorf("after %s: %s, want %s", c.after, got, c.want)
		}
	}
	r := behavior(func(up, down *autoscalingv2.HPAScalingRules) {
		up.StabilizationWindowSeconds, down.StabilizationWindowSeconds = new(int32(60)), new(int32(120))
	})
	h = &history{}
	h.begin(10, noon)
	for _, c := range []struct {
		after   time.Duration
		desired int32
		want    string
	}{
		{10 * time.Second, 15, "10 ScaleUpStabilized"},
		{61 * time.Second, 20, "15 ScaleUpStabilized"},
		{71 * time.Second, 20, "20 ReadyForNewScale"},
		{100 * time.Second, 5, "10 ScaleDownStabilized"},
		{192 * time.Second, 5, "5 ReadyForNewScale"},
	} {
		n, able, _ := h.settleBy(r, l, c.desired, noon.Add(c.after))
		if got := fmt.Sprint(n, " ", able.reason); got != c.want {
			t.Errorf("with windows, after %s: %s, want %s", c.after, got, c.want)
		}
	}
	if len(h.proposed) > 4 {
		t.Errorf("what is too old is kept: %v", h.proposed)
	}
}

// TestScaled checks that changes beyond the period of every policy are dropped.
func TestScaled(t *testing.T) {
	t.Parallel()
	h, r := &history{}, behavior(func(_, _ *autoscalingv2.HPAScalingRules) {})
	for i := range 100 {
		h.scaled(r, 1, noon.Add(time.Duration(i)*time.Minute))
	}
	if len(h.done) != 1 {
		t.Errorf("%d are kept", len(h.done))
	}
}
