// Package leaseelection decides who holds a Lease with LeaseCandidates: coordinated leader election, KEP-4355, as in
// kube-apiserver (pkg/controlplane/controller/leaderelection of Kubernetes 1.36).
//
// It is the pure part of the controller in package candidates, and safe for concurrent use. An election takes several
// rounds. Each derives the next step from the Lease and its candidates; there is no state between them.
package leaseelection

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/blang/semver/v4"
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kube's times.
const (
	// answerWithin is the time for a candidate's answer to a ping, and how long the answer counts.
	answerWithin = 5 * time.Second
	// electedFor is the duration in seconds of a Lease with a newly elected holder, which renews it from then on.
	electedFor = int32(5)
	// candidateFor is the duration of a candidacy after its last renewal. The candidate is pinged after half of it at
	// the latest.
	candidateFor = 30 * time.Minute
)

// Round is the state of a Lease with candidates at one time.
type Round struct {
	Now   time.Time
	Lease *coordinationv1.Lease // nil if there is none
	// Candidates are the unexpired candidates (Left), by name. There is at least one.
	Candidates []*coordinationv1beta1.LeaseCandidate
}

// Step is the next step after a round. An empty one means to wait.
type Step struct {
	// Ping are the candidates to ping first: each gets a pingTime, and answers with a renewTime.
	Ping []*coordinationv1beta1.LeaseCandidate
	// Lease is the new spec of the Lease, nil if it stays unchanged.
	Lease *coordinationv1.LeaseSpec
}

// ErrNobody is the error if no candidate has answered.
var ErrNobody = errors.New("no candidate answers")

// Next returns the next step of the election, if one is needed. An error means that none of these candidates can be
// elected.
func (r *Round) Next() (Step, error) {
	if needed, err := r.needed(); err != nil || !needed {
		return Step{}, err
	}
	ping, present, waiting := r.roll()
	switch {
	case len(ping) > 0 || waiting:
		return Step{Ping: ping}, nil
	case len(present) == 0:
		return Step{}, ErrNobody
	}
	strategy, err := strategyOf(present)
	if err != nil {
		return Step{}, err
	}
	elected := ""
	if strategy == coordinationv1.OldestEmulationVersion {
		winner := oldest(present)
		if winner == nil {
			return Step{}, errors.New("no candidate has versions that can be compared")
		}
		elected = winner.Name
	} // a strategy of another controller, which elects
	return Step{Lease: r.result(strategy, elected)}, nil
}

// needed reports whether the holder may have to change, or the candidates are due for a ping.
func (r *Round) needed() (bool, error) {
	if r.Lease == nil || Over(r.Lease.Spec, r.Now) || text(r.Lease.Spec.HolderIdentity) == "" {
		return true, nil
	}
	for _, c := range r.Candidates {
		if Left(c.Spec.RenewTime, r.Now) < candidateFor/2 {
			return true, nil
		}
	}
	strategy, err := strategyOf(r.Candidates)
	if err != nil || strategy != coordinationv1.OldestEmulationVersion {
		return false, err
	}
	best := oldest(r.Candidates)
	return best != nil && best.Name != text(r.Lease.Spec.HolderIdentity), nil
}

// roll returns the candidates to ping and the present ones, and whether answers are pending. The others have not
// answered in time and count again once they renew by themselves.
func (r *Round) roll() (ask, present []*coordinationv1beta1.LeaseCandidate, waiting bool) {
	for _, c := range r.Candidates {
		pinged, renewed := c.Spec.PingTime, c.Spec.RenewTime
		answered := pinged == nil || !renewed.Before(pinged)
		switch {
		case !answered && pinged.Add(answerWithin).After(r.Now):
			waiting = true
		case renewed.Add(answerWithin).After(r.Now):
			present = append(present, c)
		case answered:
			ask = append(ask, c)
		}
	}
	return ask, present, waiting
}

// result returns the new spec of the Lease, nil if it is unchanged. elected is "" if another controller elects.
func (r *Round) result(strategy coordinationv1.CoordinatedLeaseStrategy, elected string) *coordinationv1.LeaseSpec {
	now, seconds := metav1.NewMicroTime(r.Now), electedFor
	if r.Lease == nil {
		spec := &coordinationv1.LeaseSpec{Strategy: &strategy, LeaseDurationSeconds: &seconds, RenewTime: &now}
		if elected != "" {
			spec.HolderIdentity = &elected
		}
		return spec
	}
	spec := r.Lease.Spec.DeepCopy()
	spec.Strategy = &strategy
	switch holder := text(spec.HolderIdentity); {
	case elected == "" || elected == holder:
	case holder == "" || Over(r.Lease.Spec, r.Now):
		spec.HolderIdentity, spec.LeaseDurationSeconds, spec.RenewTime = &elected, &seconds, &now
		spec.PreferredHolder, spec.AcquireTime = nil, nil
	default:
		spec.PreferredHolder = &elected
	}
	if equality.Semantic.DeepEqual(spec, &r.Lease.Spec) {
		return nil
	}
	return spec
}

// strategyOf returns the strategy of the candidates with the newest binary. They have to agree.
func strategyOf(candidates []*coordinationv1beta1.LeaseCandidate) (coordinationv1.CoordinatedLeaseStrategy, error) {
	newest := slices.MaxFunc(candidates, func(a, b *coordinationv1beta1.LeaseCandidate) int {
		return versionOf(a.Spec.BinaryVersion).Compare(versionOf(b.Spec.BinaryVersion))
	})
	for _, c := range candidates {
		if c.Spec.Strategy != newest.Spec.Strategy &&
			versionOf(c.Spec.BinaryVersion).EQ(versionOf(newest.Spec.BinaryVersion)) {
			return "",
				fmt.Errorf("candidates %q, %q at same binary version but received differing strategies %s, %s",
					newest.Name, c.Name, newest.Spec.Strategy, c.Spec.Strategy)
		}
	}
	return newest.Spec.Strategy, nil
}

// oldest returns the best candidate by the strategy OldestEmulationVersion: the lowest emulation version, then the
// lowest binary version, then the earliest creation, then the first. It returns nil if none has versions.
func oldest(candidates []*coordinationv1beta1.LeaseCandidate) *coordinationv1beta1.LeaseCandidate {
	var best *coordinationv1beta1.LeaseCandidate
	for _, c := range candidates {
		if !isVersion(c.Spec.EmulationVersion) || !isVersion(c.Spec.BinaryVersion) {
			continue
		}
		if best == nil || cmp.Or(
			versionOf(c.Spec.EmulationVersion).Compare(versionOf(best.Spec.EmulationVersion)),
			versionOf(c.Spec.BinaryVersion).Compare(versionOf(best.Spec.BinaryVersion)),
			c.CreationTimestamp.Compare(best.CreationTimestamp.Time)) < 0 {
			best = c
		}
	}
	return best
}

// versionOf parses a version; an invalid one counts as 0.0.0.
func versionOf(text string) semver.Version {
	v, err := semver.ParseTolerant(text)
	if err != nil {
		return semver.Version{}
	}
	return v
}

func isVersion(text string) bool {
	_, err := semver.ParseTolerant(text)
	return err == nil
}

// Over reports whether a Lease has expired. One without a renewTime or duration has.
func Over(l coordinationv1.LeaseSpec, now time.Time) bool {
	return l.RenewTime == nil || l.LeaseDurationSeconds == nil ||
		l.RenewTime.Add(time.Duration(*l.LeaseDurationSeconds)*time.Second).Before(now)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Left returns the remaining time of a candidate with the given renewTime, less than zero if it has expired. One that
// has never renewed has expired.
func Left(renewed *metav1.MicroTime, now time.Time) time.Duration {
	if renewed == nil {
		return -1
	}
	return renewed.Add(candidateFor).Sub(now)
}
