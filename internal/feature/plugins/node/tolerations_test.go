package node

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestMergeTolerations compares the merge of random lists with a comparison of all pairs.
func TestMergeTolerations(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	effects := []corev1.TaintEffect{"", corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule}
	operators := []corev1.TolerationOperator{
		"", corev1.TolerationOpExists, corev1.TolerationOpEqual, corev1.TolerationOpLt,
	}
	merged := 0
	for range 20_000 {
		all := make([]corev1.Toleration, r.IntN(8))
		for i := range all {
			all[i] = corev1.Toleration{
				Key: []string{"", "a", "b"}[r.IntN(3)], Value: []string{"", "x"}[r.IntN(2)],
				Operator: operators[r.IntN(len(operators))], Effect: effects[r.IntN(len(effects))],
			}
			if r.IntN(2) == 0 {
				all[i].TolerationSeconds = new(int64(r.IntN(3)))
			}
		}
		got, want := mergeTolerations(all), mergeAllPairs(all)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("merged %+v to %+v, want %+v", all, got, want)
		}
		merged += len(all) - len(got)
	}
	if merged == 0 {
		t.Error("no toleration was merged")
	}
}

// mergeAllPairs is Kubernetes' algorithm, which compares all pairs.
func mergeAllPairs(all []corev1.Toleration) []corev1.Toleration {
	var out []corev1.Toleration
	for i, t := range all {
		covered := func(by corev1.Toleration) bool { return coversOne(by, t) }
		later := func(by corev1.Toleration) bool { return coversOne(by, t) && !reflect.DeepEqual(by, t) }
		if !slices.ContainsFunc(out, covered) && !slices.ContainsFunc(all[i+1:], later) {
			out = append(out, t)
		}
	}
	return out
}

func coversOne(by, t corev1.Toleration) bool {
	switch {
	case reflect.DeepEqual(by, t):
		return true
	case t.Key != by.Key && (by.Key != "" || by.Operator != corev1.TolerationOpExists):
		return false
	case t.Effect != by.Effect && by.Effect != "":
		return false
	case by.Effect == corev1.TaintEffectNoExecute && by.TolerationSeconds != nil &&
		(t.TolerationSeconds == nil || *t.TolerationSeconds > *by.TolerationSeconds):
		return false
	case by.Operator == corev1.TolerationOpExists:
		return true
	}
	return (by.Operator == corev1.TolerationOpEqual || by.Operator == "") &&
		t.Operator == corev1.TolerationOpEqual && t.Value == by.Value
}

// TestMergeManyTolerations merges a list that takes minutes if all pairs are compared.
func TestMergeManyTolerations(t *testing.T) {
	t.Parallel()
	all := make([]corev1.Toleration, 200_000)
	for i := range all {
		all[i] = corev1.Toleration{Key: fmt.Sprint("a", i), Operator: corev1.TolerationOpExists}
	}
	if got := mergeTolerations(all); len(got) != len(all) {
		t.Errorf("%d of %d tolerations are left", len(got), len(all))
	}
}
