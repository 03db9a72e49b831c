package verb

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// ending says how a deletion goes about an object of a kind that gives its objects time to end
// (catalog.Rules.GracePeriod). The zero value means that there is no time to give: the kind has none, or the object's
// is over.
type ending struct {
	entry *watchcache.Entry // what is deleted
	// graceful is true if the object is first marked with period and until, and removed in a second step if period is
	// 0.
	graceful bool
	// underWay is true if the object is being deleted already and the request would not make it end any sooner.
	underWay bool
	period   int64 // seconds
	until    time.Time
}

// ending returns how the object ends. It completes the options, as admission sees them.
//
// A time that has begun can only be shortened. Cut shorter than what has passed of it, it leaves a second, so that
// the one that ends the object hears of it; 0 is for one that has ended it. Source: BeforeDelete in
// k8s.io/apiserver/pkg/registry/rest.
func (c *Call) ending(obj object.Object, o *metav1.DeleteOptions, now time.Time) ending {
	if o.GracePeriodSeconds != nil && *o.GracePeriodSeconds < 0 {
		second := int64(1)
		o.GracePeriodSeconds = &second
	}
	rules := c.Strategy()
	if rules == nil || rules.GracePeriod == nil {
		return ending{}
	}
	meta := object.Meta(obj)
	since := object.String(meta, "deletionTimestamp")
	if since == "" {
		period := rules.GracePeriod(obj, o.GracePeriodSeconds)
		o.GracePeriodSeconds = &period
		return ending{graceful: true, period: period, until: now.Add(seconds(period))}
	}
	given, _ := meta["deletionGracePeriodSeconds"].(int64)
	switch {
	case given == 0:
		return ending{}
	case o.GracePeriodSeconds == nil:
		o.GracePeriodSeconds = &given
		return ending{underWay: true}
	}
	period := *o.GracePeriodSeconds
	if period >= given {
		return ending{underWay: true}
	}
	until, err := time.Parse(time.RFC3339, since)
	if err != nil {
		return ending{graceful: true, period: period, until: now}
	}
	if until = until.Add(seconds(period - given)); until.Before(now) {
		until = now
		period = min(period, 1)
	}
	return ending{graceful: true, period: period, until: until}
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// mark sets what tells everyone that the object has until then to end.
func (e ending) mark(obj object.Object) {
	meta := object.Meta(obj)
	if object.String(meta, "deletionTimestamp") == "" {
		raiseGeneration(meta)
	}
	meta["deletionTimestamp"] = stamp(e.until)
	meta["deletionGracePeriodSeconds"] = e.period
}

// markDeleted sets what tells everyone that an object is being deleted; the first deletion counts.
func (v *Verbs) markDeleted(obj object.Object) {
	meta := object.Meta(obj)
	if object.String(meta, "deletionTimestamp") != "" {
		return
	}
	raiseGeneration(meta)
	meta["deletionTimestamp"] = stamp(v.now())
	meta["deletionGracePeriodSeconds"] = int64(0)
}

func raiseGeneration(meta object.Object) {
	if generation, ok := meta["generation"].(int64); ok && generation > 0 {
		meta["generation"] = generation + 1
	}
}
