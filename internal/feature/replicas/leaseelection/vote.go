// Package leaseelection decides who holds a Lease for which there are LeaseCandidates: coordinated leader election,
// KEP-4355, as kube-apiserver does it (pkg/controlplane/controller/leaderelection of Kubernetes 1.36).
//
// It is what controller coordination of package control thinks: pure, and safe for concurrent use. An election takes
// several rounds, each of which finds out from the Lease and its candidates what comes next; nothing is remembered
// between them.
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
	// answerWithin is how long a candidate has to answer a ping, and how long its answer counts.
	answerWithin = 5 * time.Second
	// electedFor is how long a Lease is good in which a candidate has just been elected, in seconds: the elected renews
	// it from then on.
	electedFor = int32(5)
	// candidateFor is how long a candidate is one after it has last said so. It is asked in half of that at the latest.
	candidateFor = 30 * time.Minute
)

// Round is what is known of a Lease with candidates at one moment.
type Round struct {
	Now   time.Time
	Lease *coordinationv1.Lease // nil if there is none
	// Candidates are those that are not over (Left), by name. There is at least one.
	Candidates []*coordinationv1beta1.LeaseCandidate
}

// Step is what follows from a round. If it is empty, there is nothing to do but to wait.
type Step struct {
	// Ping are the candidates who have to show first that they are there: each is to get a pingTime, and to answer
	// with a renewTime.
	Ping []*coordinationv1beta1.LeaseCandidate
	// Lease is what the Lease is to say, nil if it stays as it is.
	Lease *coordinationv1.LeaseSpec
}

// ErrNobody says that no candidate has shown that it is there.
var ErrNobody = errors.New("no candidate answers")

// Next returns the next step of the election, if there needs to be one. An error says why none of these candidates can
// be elected.
func (r *Round) Next() (Step, error) {
	if needed, err := r.needed(); err != nil || !needed {
		return Step{}, err
	}
	ping, present, awaited := r.roll()
	switch {
	case len(ping) > 0 || awaited:
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

// needed reports whether another candidate may have to lead, or the candidates have long not been asked.
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

// roll tells which candidates are to be asked whether they are there, which are there, and whether answers may still
// come. The others have not answered in time and are asked again when they renew by themselves.
func (r *Round) roll() (ask, present []*coordinationv1beta1.LeaseCandidate, awaited bool) {
	for _, c := range r.Candidates {
		pinged, renewed := c.Spec.PingTime, c.Spec.RenewTime
		answered := pinged == nil || !renewed.Before(pinged)
		switch {
		case !answered && pinged.Add(answerWithin).After(r.Now):
			awaited = true
		case renewed.Add(answerWithin).After(r.Now):
			present = append(present, c)
		case answered:
			ask = append(ask, c)
		}
	}
	return ask, present, awaited
}

// result is what the Lease is to say, nil if it says so already. elected is "" if another controller elects.
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

// oldest returns the best candidate by the strategy OldestEmulationVersion: of those that emulate the oldest version
// the one with the oldest binary, then the one that has been there longest, then the first. nil if none says its
// versions.
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

// versionOf reads a version; what is none counts as 0.0.0.
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

// Over reports whether a Lease has expired. One that does not say when it was renewed, or for how long, has.
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

// Left returns how long a candidate remains one that has last shown at renewed that it is there; less than zero if it
// is none. One that has never done so is none.
func Left(renewed *metav1.MicroTime, now time.Time) time.Duration {
	if renewed == nil {
		return -1
	}
	return renewed.Add(candidateFor).Sub(now)
}
