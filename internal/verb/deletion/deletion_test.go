package deletion

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

func TestGraceFor(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	strategy := &catalog.Strategy{GracePeriod: func(_ object.Object, requested *int64) int64 {
		if requested != nil {
			return *requested
		}
		return 30
	}}
	seconds := func(n int64) *int64 { return &n }
	ending := object.Object{ // it has 10 of its 30 seconds left
		"deletionTimestamp": "2026-01-02T03:04:15Z", "deletionGracePeriodSeconds": int64(30),
	}
	at := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	for name, c := range map[string]struct {
		strategy  *catalog.Strategy
		meta      object.Object
		requested *int64
		want      Grace
		options   *int64 // as admission sees them
	}{
		"a kind without it": {nil, object.Object{}, seconds(5), Grace{}, seconds(5)},
		"less than none":    {nil, object.Object{}, seconds(-5), Grace{}, seconds(1)},
		"usual": {
			strategy, object.Object{}, nil, Grace{Graceful: true, Period: 30, Until: at(30)}, seconds(30),
		},
		"asked": {
			strategy, object.Object{}, seconds(3), Grace{Graceful: true, Period: 3, Until: at(3)}, seconds(3),
		},
		"at once":       {strategy, object.Object{}, seconds(0), Grace{Graceful: true, Until: now}, seconds(0)},
		"again":         {strategy, ending, nil, Grace{UnderWay: true}, seconds(30)},
		"again, longer": {strategy, ending, seconds(40), Grace{UnderWay: true}, seconds(40)},
		"again, shorter": {
			strategy, ending, seconds(25), Grace{Graceful: true, Period: 25, Until: at(5)}, seconds(25),
		},
		"again, over by then": {
			strategy, ending, seconds(10), Grace{Graceful: true, Period: 1, Until: now}, seconds(10),
		},
		"it has ended": {strategy, ending, seconds(0), Grace{Graceful: true, Until: now}, seconds(0)},
	} {
		o := metav1.DeleteOptions{GracePeriodSeconds: c.requested}
		if got := GraceFor(c.strategy, object.Object{"metadata": c.meta}, &o, now); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if *o.GracePeriodSeconds != *c.options {
			t.Errorf("%s: the options say %d, want %d", name, *o.GracePeriodSeconds, *c.options)
		}
	}
}

func TestMark(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	obj := object.Object{"metadata": object.Object{"generation": int64(2)}}
	Grace{Graceful: true, Period: 30, Until: now}.Mark(obj)
	Grace{Graceful: true, Period: 3, Until: now.Add(-time.Second)}.Mark(obj)
	Mark(obj, now.Add(time.Hour)) // the first deletion counts
	const want = "map[deletionGracePeriodSeconds:3 deletionTimestamp:2026-01-02T03:04:04Z generation:3]"
	if got := fmt.Sprint(object.Meta(obj)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	obj = object.Object{"metadata": object.Object{}}
	Mark(obj, now)
	const bare = "map[deletionGracePeriodSeconds:0 deletionTimestamp:2026-01-02T03:04:05Z]"
	if got := fmt.Sprint(object.Meta(obj)); got != bare {
		t.Errorf("%s, want %s", got, bare)
	}
}

func TestPropagate(t *testing.T) {
	policy := func(p metav1.DeletionPropagation) metav1.DeleteOptions {
		return metav1.DeleteOptions{PropagationPolicy: &p}
	}
	orphan, keep := true, false
	const foreground, orphans = metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents
	job := &catalog.Strategy{Dependents: catalog.OrphanDependents}
	event := &catalog.Strategy{Dependents: catalog.NoDependents}
	for name, c := range map[string]struct {
		strategy *catalog.Strategy
		has      []any
		options  metav1.DeleteOptions
		want     []any
	}{
		"usual":          {nil, nil, metav1.DeleteOptions{}, nil},
		"usual of a job": {job, nil, metav1.DeleteOptions{}, []any{orphans}},
		"a job in the background": {
			job, []any{orphans, "x"}, policy(metav1.DeletePropagationBackground), []any{"x"},
		},
		"what the object has": {nil, []any{foreground}, metav1.DeleteOptions{}, []any{foreground}},
		"foreground": {
			nil, []any{"x"}, policy(metav1.DeletePropagationForeground), []any{"x", foreground},
		},
		"orphan instead": {
			nil, []any{foreground, "x"}, policy(metav1.DeletePropagationOrphan), []any{"x", orphans},
		},
		//lint:ignore SA1019 clients may still send it
		"the old option": {nil, nil, metav1.DeleteOptions{OrphanDependents: &orphan}, []any{orphans}},
		//lint:ignore SA1019 clients may still send it
		"the old option, no":       {job, nil, metav1.DeleteOptions{OrphanDependents: &keep}, nil},
		"a kind that owns nothing": {event, nil, policy(metav1.DeletePropagationForeground), nil},
		"its place in the list too": {
			nil, []any{orphans, "x"}, policy(metav1.DeletePropagationOrphan), []any{orphans, "x"},
		},
	} {
		obj := object.Object{"metadata": object.Object{}}
		object.SetOrDelete(object.Meta(obj), "finalizers", c.has, c.has != nil)
		Propagate(c.strategy, obj, c.options)
		got, _ := object.Meta(obj)["finalizers"].([]any)
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
