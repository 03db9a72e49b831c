package autoscale

import (
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

const (
	// downWindow is the default stabilization window of scaling down.
	downWindow = 5 * time.Minute
	// Without behavior, a target scales up at once at most to twice its replicas, or to this number if that is higher.
	smallGrowth = 4
)

// limits are between how many replicas a target may have, and how many it has.
type limits struct{ least, most, current int32 }

// verdict is the content of a condition.
type verdict struct {
	holds           bool
	reason, message string
}

var (
	within  = verdict{false, "DesiredWithinRange", "the desired count is within the acceptable range"}
	tooFast = verdict{true, "ScaleUpLimit",
		"the desired replica count is increasing faster than the maximum scale rate"}
	tooFastDown = verdict{true, "ScaleDownLimit",
		"the desired replica count is decreasing faster than the maximum scale rate"}
	tooMany = verdict{true, "TooManyReplicas", "the desired replica count is more than the maximum replica count"}
	tooFew  = verdict{true, "TooFewReplicas", "the desired replica count is less than the minimum replica count"}
)

// apply returns the part of a proposal that is allowed at once, without behavior.
func (l limits) apply(desired int32) (int32, verdict) {
	most, why := l.most, tooMany
	if rate := max(clamp(2*float64(l.current)), smallGrowth); most > rate {
		most, why = rate, tooFast
	}
	switch {
	case desired < l.least:
		return l.least, tooFew
	case desired > most:
		return most, why
	}
	return desired, within
}

// rules are the behavior of an autoscaler, with the defaults of the API.
type rules struct{ up, down autoscalingv2.HPAScalingRules }

func rulesOf(b *autoscalingv2.HorizontalPodAutoscalerBehavior) rules {
	var r rules
	if b.ScaleUp != nil {
		r.up = *b.ScaleUp
	}
	if b.ScaleDown != nil {
		r.down = *b.ScaleDown
	}
	whole := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15}
	if len(r.up.Policies) == 0 {
		few := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15}
		r.up.Policies = []autoscalingv2.HPAScalingPolicy{few, whole}
	}
	if len(r.down.Policies) == 0 {
		r.down.Policies = []autoscalingv2.HPAScalingPolicy{whole}
	}
	return r
}

// windows returns the stabilization windows of scaling up and down.
func (r rules) windows() (up, down time.Duration) {
	down = downWindow
	if s := r.up.StabilizationWindowSeconds; s != nil {
		up = time.Duration(*s) * time.Second
	}
	if s := r.down.StabilizationWindowSeconds; s != nil {
		down = time.Duration(*s) * time.Second
	}
	return up, down
}

// longest returns the longest period of policies.
func longest(policies []autoscalingv2.HPAScalingPolicy) (d time.Duration) {
	for _, p := range policies {
		d = max(d, time.Duration(p.PeriodSeconds)*time.Second)
	}
	return d
}

// applyBy returns the part of a proposal that the behavior allows at once, after the recorded changes.
func (l limits) applyBy(r rules, done *history, desired int32, now time.Time) (int32, verdict) {
	switch {
	case desired > l.current:
		most, why := l.most, tooMany
		if rate := max(l.current, l.reach(r.up, +1, done, now)); most > rate {
			most, why = rate, tooFast
		}
		if desired > most {
			return most, why
		}
	case desired < l.current:
		least, why := l.least, tooFew
		if rate := min(l.current, l.reach(r.down, -1, done, now)); least < rate {
			least, why = rate, tooFastDown
		}
		if desired < least {
			return least, why
		}
	}
	return desired, within
}

// reach returns the replicas that rules allow at once: the maximum if direction is 1, or the minimum if it is -1.
func (l limits) reach(r autoscalingv2.HPAScalingRules, direction int32, done *history, now time.Time) int32 {
	selects := autoscalingv2.MaxChangePolicySelect
	if r.SelectPolicy != nil {
		selects = *r.SelectPolicy
	}
	if selects == autoscalingv2.DisabledPolicySelect {
		return l.current
	}
	far := (direction > 0) == (selects != autoscalingv2.MinChangePolicySelect) // the highest value counts
	reach := int32(math.MaxInt32)
	if far {
		reach = math.MinInt32
	}
	for _, p := range r.Policies {
		start := l.current - done.change(now.Add(-time.Duration(p.PeriodSeconds)*time.Second))
		proposed := clamp(float64(start) + float64(direction)*float64(p.Value))
		if p.Type == autoscalingv2.PercentScalingPolicy {
			of := float64(start) * (1 + float64(direction)*float64(p.Value)/100)
			if proposed = clamp(of); direction > 0 { // else a small target would never grow
				proposed = ceil(of)
			}
		}
		if far {
			reach = max(reach, proposed)
		} else {
			reach = min(reach, proposed)
		}
	}
	return reach
}
