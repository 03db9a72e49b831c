// Package deletion says how an object ends that is being deleted: how long it may take (Grace), what its metadata says
// meanwhile, and what happens to the objects that it owns (Propagate).
//
// It stands in the verb Delete, before anything is written. Its functions are pure, but for the objects and options
// that they change in place.
package deletion

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/objectmeta"
)

// Grace says how a deletion goes about an object of a kind that gives its objects time to end
// (catalog.Strategy.GracePeriod). The zero value means that there is no time to give: the kind has none, or the
// object's is over.
type Grace struct {
	// Graceful is true if the object is first marked with Period and Until, and removed in a second step if Period is
	// 0.
	Graceful bool
	// UnderWay is true if the object is being deleted already and the request would not make it end any sooner.
	UnderWay bool
	Period   int64 // seconds
	Until    time.Time
}

// GraceFor returns how an object of a kind with this strategy, which may be nil, ends. It completes the options, as
// admission sees them.
//
// A time that has begun can only be shortened. Cut shorter than what has passed of it, it leaves a second, so that
// the one that ends the object hears of it; 0 is for one that has ended it. Source: BeforeDelete in
// k8s.io/apiserver/pkg/registry/rest.
func GraceFor(
	rules *catalog.Strategy, obj object.Object, o *metav1.DeleteOptions, now time.Time,
) Grace {
	if o.GracePeriodSeconds != nil && *o.GracePeriodSeconds < 0 {
		second := int64(1)
		o.GracePeriodSeconds = &second
	}
	if rules == nil || rules.GracePeriod == nil {
		return Grace{}
	}
	meta := object.Meta(obj)
	since := object.String(meta, "deletionTimestamp")
	if since == "" {
		period := rules.GracePeriod(obj, o.GracePeriodSeconds)
		o.GracePeriodSeconds = &period
		return Grace{Graceful: true, Period: period, Until: now.Add(seconds(period))}
	}
	given, _ := meta["deletionGracePeriodSeconds"].(int64)
	switch {
	case given == 0:
		return Grace{}
	case o.GracePeriodSeconds == nil:
		o.GracePeriodSeconds = &given
		return Grace{UnderWay: true}
	}
	period := *o.GracePeriodSeconds
	if period >= given {
		return Grace{UnderWay: true}
	}
	until, err := time.Parse(time.RFC3339, since)
	if err != nil {
		return Grace{Graceful: true, Period: period, Until: now}
	}
	if until = until.Add(seconds(period - given)); until.Before(now) {
		until = now
		period = min(period, 1)
	}
	return Grace{Graceful: true, Period: period, Until: until}
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// Mark sets what tells everyone that the object has until then to end.
func (g Grace) Mark(obj object.Object) {
	meta := object.Meta(obj)
	if object.String(meta, "deletionTimestamp") == "" {
		raiseGeneration(meta)
	}
	meta["deletionTimestamp"] = objectmeta.Stamp(g.Until)
	meta["deletionGracePeriodSeconds"] = g.Period
}

// Mark sets what tells everyone that an object is being deleted; the first deletion counts.
func Mark(obj object.Object, now time.Time) {
	meta := object.Meta(obj)
	if object.String(meta, "deletionTimestamp") != "" {
		return
	}
	raiseGeneration(meta)
	meta["deletionTimestamp"] = objectmeta.Stamp(now)
	meta["deletionGracePeriodSeconds"] = int64(0)
}

func raiseGeneration(meta object.Object) {
	if generation, ok := meta["generation"].(int64); ok && generation > 0 {
		meta["generation"] = generation + 1
	}
}
