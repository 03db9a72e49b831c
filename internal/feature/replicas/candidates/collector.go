package candidates

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/leaseelection"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// candidates deletes expired LeaseCandidates. Its keys are "namespace/name" of candidates.
//
// Kubernetes checks all of them every half hour. Here each is deleted at its own expiry.
type candidates struct{ *part.Host }

func (c *candidates) Observe(ev *watchcache.Event, need func(string)) {
	if ev.Collection.Prefix() == ref.LeaseCandidates.Prefix && ev.Type != watchcache.Deleted {
		need(ev.Entry.Key())
	}
}

func (c *candidates) Reconcile(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	e := c.View.Collection(ref.LeaseCandidates.Prefix).Snapshot().Get(namespace, name)
	if e == nil {
		return nil
	}
	candidate, err := readCandidate(e)
	if err != nil {
		return err
	}
	renewed := candidate.Spec.RenewTime
	if renewed == nil { // the same duration for the first time
		renewed = &metav1.MicroTime{Time: candidate.CreationTimestamp.Time}
	}
	if left := leaseelection.Left(renewed, c.Now()); left >= 0 {
		return control.Again(left + 1)
	}
	call, err := c.Verbs.Call(candidatesResource, namespace, name, verb.ServerUser())
	if err != nil {
		return err
	}
	_, err = c.Verbs.Delete(ctx, call,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &candidate.ResourceVersion}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // it was renewed meanwhile, or is gone
		return nil
	}
	return err
}
