// Package deletion decides how an object is deleted: the grace period (Grace), the metadata during the deletion (Mark),
// and the fate of the dependents (Propagate).
//
// The verb Delete calls it before it writes. Its functions are pure, except that they change objects and options in
// place.
package deletion

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/objectmeta"
)

// Grace describes the deletion of an object of a kind with a grace period (catalog.Strategy.GracePeriod). The zero
// value means that no time is left: the kind has no grace period, or the object's has ended.
type Grace struct {
	// Graceful is true if the object is first marked with Period and Until. If Period is 0, a second write removes it.
	Graceful bool
	// UnderWay is true if the object is being deleted already and the request would not shorten its grace period.
	UnderWay bool
	Period   int64 // seconds
	Until    time.Time
}

// GraceFor returns the Grace of an object. rules is the strategy of its kind and may be nil. GraceFor also completes
// the options, as admission receives them.
//
// A grace period that has begun can only be shortened. If the new period has already elapsed, one second remains, so
// that the component that ends the object is notified; 0 means that it has ended the object. Source: BeforeDelete in
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

// Mark sets the deletion timestamp to the end of the grace period, and the period itself.
func (g Grace) Mark(obj object.Object) {
	meta := object.Meta(obj)
	if object.String(meta, "deletionTimestamp") == "" {
		raiseGeneration(meta)
	}
	meta["deletionTimestamp"] = objectmeta.Stamp(g.Until)
	meta["deletionGracePeriodSeconds"] = g.Period
}

// Mark sets the deletion timestamp of an object. Only the first call has an effect.
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
