package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// election selects the replica that runs the controllers: the holder of a Lease in kube-system that renews it in time.
// Clients' leader election (client-go's package leaderelection) works the same way and uses the same fields. Here a
// follower needs no request to watch the leader, because the Lease is in its view, and it takes over at once when a
// stopping leader releases it.
//
// If a replica was suspended for seconds, two replicas may briefly believe that they lead. That is harmless: every
// write of a controller is conditional on the state it has read.
type election struct {
	Config
	Election
	leases *watchcache.Collection
	// lastSeen records when another replica was last seen to renew the Lease; nil if unused.
	lastSeen *atomic.Int64
}

// Election is a Lease in kube-system that replicas compete for.
type Election struct {
	// Lease is the name of the Lease.
	Lease string
	// Duration is how long followers wait after the leader's last observed renewal. A leader that fails to renew for
	// RenewWithin stops, so that it has stopped before the next one begins.
	Duration, RenewWithin time.Duration
	RenewEvery            time.Duration
	// Retry is the pause after a failed request.
	Retry time.Duration
}

// ownElection is the election for controllers that are not part of kube-apiserver.
var ownElection = Election{
	Lease: "bowsprit-controllers", Duration: 6 * time.Second, RenewWithin: 4 * time.Second,
	RenewEvery: 1500 * time.Millisecond, Retry: 500 * time.Millisecond,
}

const electionNamespace = "kube-system"

var leasesResource = catalog.GroupResource{Group: coordinationv1.GroupName, Resource: leasesPrefix}

const leasesPrefix = "leases"

func newElection(c Config, s Election) *election {
	return &election{Config: c, Election: s, leases: c.View.Collection(leasesPrefix)}
}

// run calls lead each time that this replica has been elected, with a context that ends with its term, until ctx ends.
func (e *election) run(ctx context.Context, lead func(context.Context)) {
	for e.acquire(ctx) {
		e.Log.Info("the controllers of this replica start", "lease", e.Lease, "identity", e.Identity)
		e.hold(ctx, lead)
		e.Log.Info("the controllers of this replica stop", "lease", e.Lease, "identity", e.Identity)
	}
}

// sighting is a state of the Lease and the time at which this replica first saw it. It uses only this replica's clock,
// since other clocks may be wrong.
type sighting struct {
	lease *coordinationv1.Lease // nil if it does not exist
	at    time.Time
}

// look updates a sighting from the view.
func (e *election) look(s *sighting) error {
	entry := e.leases.Snapshot().Get(electionNamespace, e.Lease)
	if entry == nil {
		s.lease = nil
		return nil
	}
	lease := &coordinationv1.Lease{}
	if err := json.Unmarshal(entry.JSON(), lease); err != nil {
		return fmt.Errorf("lease %s/%s: %w", electionNamespace, e.Lease, err)
	}
	if s.lease == nil || s.lease.ResourceVersion != lease.ResourceVersion {
		// The state at the first look may belong to a replica that is gone.
		if s.lease != nil && text(lease.Spec.HolderIdentity) != "" && e.lastSeen != nil {
			e.lastSeen.Store(time.Now().UnixNano())
		}
		s.lease, s.at = lease, time.Now()
	}
	return nil
}

// acquire returns true when this replica holds the Lease, false when ctx has ended.
func (e *election) acquire(ctx context.Context) bool {
	var seen sighting
	for ctx.Err() == nil {
		changed := e.leases.Changed() // before the look, so that no later change is missed
		err := e.look(&seen)
		pause := e.Retry
		if err == nil {
			if pause = untilFree(seen, e.Identity, e.Duration, time.Now()); pause <= 0 {
				claim, cancel := context.WithTimeout(ctx, e.RenewWithin)
				err = e.write(claim, seen.lease)
				cancel()
				if err == nil {
					return true
				}
				pause = e.Retry
			}
		}
		if err != nil && ctx.Err() == nil {
			e.Log.Debug("this replica is not elected", "error", err)
		}
		wait(ctx, pause, changed)
	}
	return false
}

// hold leads until ctx ends or the Lease is lost.
func (e *election) hold(ctx context.Context, lead func(context.Context)) {
	term, end := context.WithCancel(ctx)
	defer end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		lead(term)
	}()
	deadline, pause := time.Now().Add(e.RenewWithin), e.RenewEvery
	for {
		wait(ctx, pause, nil)
		if ctx.Err() != nil {
			<-done
			e.release()
			return
		}
		began := time.Now()
		err := e.renew(ctx, deadline)
		if err == nil {
			deadline, pause = began.Add(e.RenewWithin), e.RenewEvery
			continue
		}
		if lost := errors.Is(err, errDeposed); lost || !time.Now().Before(deadline) {
			e.Log.Warn("this replica no longer leads", "lease", e.Lease, "identity", e.Identity, "error", err)
			end()
			<-done
			return
		}
		pause = e.Retry
	}
}

// errDeposed: another replica holds the Lease.
var errDeposed = errors.New("another replica leads")

func (e *election) renew(ctx context.Context, deadline time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	return e.update(ctx, func(spec *coordinationv1.LeaseSpec) error {
		if text(spec.HolderIdentity) != e.Identity {
			return errDeposed
		}
		spec.RenewTime = &metav1.MicroTime{Time: e.Now()}
		return nil
	})
}

// release releases the Lease after the controllers have stopped, so that the next leader need not wait.
func (e *election) release() {
	ctx, cancel := context.WithTimeout(context.Background(), e.RenewWithin)
	defer cancel()
	err := e.update(ctx, func(spec *coordinationv1.LeaseSpec) error {
		if text(spec.HolderIdentity) != e.Identity {
			return errDeposed
		}
		spec.HolderIdentity = new(string)
		spec.RenewTime = &metav1.MicroTime{Time: e.Now()}
		return nil
	})
	if err != nil && !errors.Is(err, errDeposed) {
		e.Log.Info("the lease of the controllers was not released; other servers wait until it expires", "error", err)
	}
}

// write takes the Lease if it is still in the observed state.
func (e *election) write(ctx context.Context, seen *coordinationv1.Lease) error {
	if seen == nil {
		call, err := e.call()
		if err != nil {
			return err
		}
		spec := e.claim(coordinationv1.LeaseSpec{})
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
		if err != nil {
			return err
		}
		obj, err := e.Verbs.New(call,
			object.Object{"metadata": object.Object{"name": e.Lease, "namespace": electionNamespace}, "spec": raw})
		if err != nil {
			return err
		}
		_, err = e.Verbs.Create(ctx, call, obj, metav1.CreateOptions{FieldManager: "bowsprit"})
		return err
	}
	return e.updateLease(ctx, func(lease *coordinationv1.Lease) error {
		if lease.ResourceVersion != seen.ResourceVersion {
			return errDeposed // another replica was faster
		}
		lease.Spec = e.claim(lease.Spec)
		return nil
	})
}

// claim returns the Lease of a new leader.
func (e *election) claim(old coordinationv1.LeaseSpec) coordinationv1.LeaseSpec {
	now := metav1.MicroTime{Time: e.Now()}
	seconds, transitions := int32(e.Duration/time.Second), int32(0)
	if old.LeaseTransitions != nil {
		transitions = *old.LeaseTransitions
	}
	if old.HolderIdentity != nil && *old.HolderIdentity != e.Identity {
		transitions++
	}
	return coordinationv1.LeaseSpec{
		HolderIdentity: &e.Identity, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now,
		LeaseTransitions: &transitions,
	}
}

func (e *election) update(ctx context.Context, change func(*coordinationv1.LeaseSpec) error) error {
	return e.updateLease(ctx, func(lease *coordinationv1.Lease) error { return change(&lease.Spec) })
}

func (e *election) updateLease(ctx context.Context, change func(*coordinationv1.Lease) error) error {
	call, err := e.call()
	if err != nil {
		return err
	}
	_, err = e.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: "bowsprit"},
		func(obj object.Object) (object.Object, error) {
			lease := &coordinationv1.Lease{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, lease); err != nil {
				return nil, err
			}
			if err := change(lease); err != nil {
				return nil, err
			}
			spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&lease.Spec)
			obj["spec"] = spec
			return obj, err
		})
	return err
}

func (e *election) call() (*verb.Call, error) {
	return e.Verbs.Call(leasesResource, electionNamespace, e.Lease, ControllerUser("controllers-election"))
}

// wait returns after d, when changed is closed, or when ctx ends.
func wait(ctx context.Context, d time.Duration, changed <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-ctx.Done():
	}
}
