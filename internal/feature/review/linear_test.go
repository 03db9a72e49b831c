package review

import (
	"fmt"
	"runtime"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSelectorsAreLinear compares the memory that selectors of 500 and 4,000 requirements take altogether: eight times
// as much, and not the square of it.
func TestSelectorsAreLinear(t *testing.T) {
	attributes := func(n int, op metav1.LabelSelectorOperator) *authorizationv1.ResourceAttributes {
		a := &authorizationv1.ResourceAttributes{
			LabelSelector: &authorizationv1.LabelSelectorAttributes{},
			FieldSelector: &authorizationv1.FieldSelectorAttributes{},
		}
		for i := range n {
			key := fmt.Sprintf("key%d", i)
			a.LabelSelector.Requirements = append(a.LabelSelector.Requirements,
				metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: []string{"a"}})
			a.FieldSelector.Requirements = append(a.FieldSelector.Requirements,
				metav1.FieldSelectorRequirement{Key: key, Operator: metav1.FieldSelectorOpIn, Values: []string{"a"}})
		}
		return a
	}
	for name, work := range map[string]func(*authorizationv1.ResourceAttributes){
		"text":   func(a *authorizationv1.ResourceAttributes) { labelSelector(a.LabelSelector) },
		"fields": func(a *authorizationv1.ResourceAttributes) { fieldSelector(a.FieldSelector) },
		"check":  func(a *authorizationv1.ResourceAttributes) { _ = wrong(checkSelectors(a)) },
	} {
		for _, op := range []metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, metav1.LabelSelectorOpExists} {
			few, many := allocated(work, attributes(500, op)), allocated(work, attributes(4000, op))
			if many > 16*few+1<<16 {
				t.Errorf("%s, %s: %d bytes for 500 requirements, %d for 4,000", name, op, few, many)
			}
		}
	}
}

func allocated[T any](work func(T), of T) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work(of)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
