package candidates

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/leaseelection"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// coordination elects the holders of Leases with candidates (KEP-4355). Clients do not race for such a Lease: each
// creates a LeaseCandidate with its versions, and the Lease names the best one. Before an election, coordination pings
// the candidates by a pingTime, which they answer with a renewTime. If the holder is no longer the best, coordination
// sets preferredHolder, and the holder releases the Lease in its own time.
//
// It has no state: each reconcile derives the next step from the Lease and its candidates. Its keys are
// "namespace/name" of Leases.
type coordination struct{ *part.Host }

// Times are the times of the Lease kube-system/leader-election-controller, for which the servers that coordinate
// elections compete: kube-apiserver's flags --coordinated-leadership-*.
type Times struct {
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

func (t Times) election() *control.Election {
	return &control.Election{
		Lease: "leader-election-controller", Duration: t.LeaseDuration, RenewWithin: t.RenewDeadline,
		RenewEvery: t.RetryPeriod, Retry: t.RetryPeriod,
	}
}

var candidatesResource = ref.LeaseCandidates.GroupResource()

var leasesResource = ref.Leases.GroupResource()

const (
	// lookEvery is the reconcile interval of a Lease with candidates, since its expiry causes no event.
	lookEvery = 5 * time.Second
	// coordinator is the field manager, as in Kubernetes.
	coordinator = "kube-apiserver"
)

func (c *coordination) Observe(ev *watchcache.Event, need func(string)) {
	switch ev.Collection.Prefix() {
	case ref.Leases.Prefix:
		if c.View.Collection(ref.LeaseCandidates.Prefix).Snapshot().Len() > 0 {
			need(ev.Entry.Key())
		}
	case ref.LeaseCandidates.Prefix:
		if lease, ok := ev.Entry.Field("spec.leaseName"); ok {
			need(ev.Entry.Namespace + "/" + lease)
		}
	}
}

func (c *coordination) Reconcile(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	round, err := c.round(namespace, name)
	if err != nil || len(round.Candidates) == 0 {
		return err
	}
	next, err := round.Next()
	if err != nil {
		c.Log.Info("no candidate could be elected; the election is retried", "lease", key, "error", err)
		return control.Again(lookEvery)
	}
	var errs []error
	for _, candidate := range next.Ping {
		errs = append(errs, c.ping(ctx, candidate, round.Now))
	}
	if next.Lease != nil {
		errs = append(errs, c.write(ctx, namespace, name, round.Lease, next.Lease))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return control.Again(lookEvery)
}

// round reads a Lease and its candidates from the view.
func (c *coordination) round(namespace, name string) (*leaseelection.Round, error) {
	r := &leaseelection.Round{Now: c.Now()}
	if e := c.View.Collection(ref.Leases.Prefix).Snapshot().Get(namespace, name); e != nil {
		r.Lease = &coordinationv1.Lease{}
		if err := json.Unmarshal(e.JSON(), r.Lease); err != nil {
			return nil, fmt.Errorf("lease %s: %w", e.Key(), err)
		}
	}
	var err error
	c.View.Collection(ref.LeaseCandidates.Prefix).Snapshot().Scan(namespace, "", func(e *watchcache.Entry) bool {
		if lease, _ := e.Field("spec.leaseName"); lease != name {
			return true
		}
		var one *coordinationv1beta1.LeaseCandidate
		if one, err = readCandidate(e); err != nil {
			return false
		}
		if leaseelection.Left(one.Spec.RenewTime, r.Now) >= 0 {
			r.Candidates = append(r.Candidates, one)
		}
		return true
	})
	return r, err
}

func readCandidate(e *watchcache.Entry) (*coordinationv1beta1.LeaseCandidate, error) {
	one := &coordinationv1beta1.LeaseCandidate{}
	if err := json.Unmarshal(e.JSON(), one); err != nil {
		return nil, fmt.Errorf("lease candidate %s: %w", e.Key(), err)
	}
	return one, nil
}

// errOutdated is the error of a write to a changed object. The change requeues it.
var errOutdated = errors.New("the object has changed since")

// ping pings a candidate.
func (c *coordination) ping(ctx context.Context, candidate *coordinationv1beta1.LeaseCandidate, now time.Time) error {
	return c.change(ctx, candidatesResource, &candidate.ObjectMeta, func(obj object.Object) error {
		spec, _ := obj["spec"].(object.Object)
		spec["pingTime"] = now.UTC().Format(metav1.RFC3339Micro)
		return nil
	})
}

// write creates a Lease, or updates it unless it has changed since it was read; seen is nil if there was none.
func (c *coordination) write(
	ctx context.Context, namespace, name string, seen *coordinationv1.Lease, spec *coordinationv1.LeaseSpec,
) error {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return err
	}
	if seen != nil {
		return c.change(ctx, leasesResource, &seen.ObjectMeta, func(obj object.Object) error {
			obj["spec"] = raw
			return nil
		})
	}
	call, err := c.Verbs.Call(leasesResource, namespace, name, verb.ServerUser())
	if err != nil {
		return err
	}
	obj, err := c.Verbs.New(call,
		object.Object{"metadata": object.Object{"name": name, "namespace": namespace}, "spec": raw})
	if err != nil {
		return err
	}
	_, err = c.Verbs.Create(ctx, call, obj, metav1.CreateOptions{FieldManager: coordinator})
	return control.IgnoreExists(err)
}

// change updates an object unless it has changed since it was read.
func (c *coordination) change(
	ctx context.Context, gr catalog.GroupResource, seen *metav1.ObjectMeta, change func(object.Object) error,
) error {
	call, err := c.Verbs.Call(gr, seen.Namespace, seen.Name, verb.ServerUser())
	if err != nil {
		return err
	}
	_, err = c.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: coordinator},
		func(obj object.Object) (object.Object, error) {
			if meta, _ := obj["metadata"].(object.Object); meta["resourceVersion"] != seen.ResourceVersion {
				return nil, errOutdated
			}
			return obj, change(obj)
		})
	if errors.Is(err, errOutdated) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
