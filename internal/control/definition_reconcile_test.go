package control

import (
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLingers checks that a definition held by another controller's finalizer reports its deletion for a while, and
// that a definition without one is removed at once.
func TestLingers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 10, 0, time.UTC)
	const cleanup, other = apiextensionsv1.CustomResourceCleanupFinalizer, "example.com/hold"
	for _, c := range []struct {
		name       string
		finalizers []string
		since      time.Duration
		want       bool
	}{
		{"held, marked just now", []string{other, cleanup}, 0, true},
		{"held, a second ago", []string{cleanup, other}, time.Second, true},
		{"held, long ago", []string{other, cleanup}, shownFor, false},
		{"not held", []string{cleanup}, 0, false},
	} {
		def := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Finalizers: c.finalizers}}
		def.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
			{
				Type: apiextensionsv1.Terminating, Status: apiextensionsv1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(now.Add(-c.since)),
			},
		}
		if got := lingers(def, now); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
