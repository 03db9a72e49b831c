package oraclebuiltins

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/controlplane/controller/leaderelection"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/bowsprit/bowsprit/internal/feature/replicas/leaseelection"
)

//go:linkname reconcileElectionStep k8s.io/kubernetes/pkg/controlplane/controller/leaderelection.(*Controller).reconcileElectionStep
func reconcileElectionStep(*leaderelection.Controller, context.Context, types.NamespacedName) (time.Duration, error)

// TestElectionMatchesUpstream lets Kubernetes' controller take one step with random Leases and candidates, and expects
// the same pings and the same Lease from package leaseelection.
func TestElectionMatchesUpstream(t *testing.T) {
	t.Parallel()
	pings, leases, waits := 0, 0, 0
	for seed := range uint64(2000) {
		now := time.Now().Truncate(time.Microsecond)
		r := randomRound(rand.New(rand.NewPCG(seed, 0)), now)
		wantPinged, want, err := theirStep(t, r)
		if errors.Is(err, errPanic) || err != nil && strings.Contains(err.Error(), "differing strategies") {
			continue // a Lease without a holder; its random order may skip the newest
		}
		r.Candidates = slices.DeleteFunc(r.Candidates,
			func(c *coordinationv1beta1.LeaseCandidate) bool { return leaseelection.Left(c.Spec.RenewTime, now) < 0 })
		var got leaseelection.Step
		if len(r.Candidates) > 0 {
			got, _ = r.Next()
		}
		var pinged []string
		for _, c := range got.Ping {
			pinged = append(pinged, c.Name)
		}
		if !slices.Equal(pinged, wantPinged) {
			t.Errorf("seed %d: pings %v, want %v (%v)", seed, pinged, wantPinged, err)
		}
		if got.Lease != nil && got.Lease.RenewTime != nil && want != nil && want.RenewTime != nil &&
			want.RenewTime.Sub(got.Lease.RenewTime.Time).Abs() < time.Minute {
			got.Lease.RenewTime = want.RenewTime // Kubernetes reads another clock
		}
		if !reflect.DeepEqual(got.Lease, want) {
			t.Errorf("seed %d: lease\n%s, want\n%s (%v)", seed, brief(got.Lease), brief(want), err)
		}
		switch {
		case want != nil:
			leases++
		case wantPinged != nil:
			pings++
		default:
			waits++
		}
	}
	if min(pings, leases, waits) < 100 {
		t.Errorf("%d pings, %d leases, %d waits", pings, leases, waits)
	}
}

func randomRound(random *rand.Rand, now time.Time) *leaseelection.Round {
	ago := func(choices ...time.Duration) *metav1.MicroTime {
		if n := random.IntN(len(choices) + 1); n < len(choices) {
			return &metav1.MicroTime{Time: now.Add(-choices[n])}
		}
		return nil
	}
	own := []coordinationv1.CoordinatedLeaseStrategy{coordinationv1.OldestEmulationVersion, "example.com/own"}
	versions := []string{"1.19.0", "1.20.0", "1.20.0", "1.20.1-rc.1", ""}
	names := []string{"a", "b", "c", "d"}
	r := &leaseelection.Round{Now: now}
	calm := random.IntN(2) // in some rounds all are alive
	for i, name := range names[:1+random.IntN(4)] {
		c := &coordinationv1beta1.LeaseCandidate{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: name,
				CreationTimestamp: metav1.NewTime(
					now.Add(-time.Duration(random.IntN(99)*4+i) * time.Hour).Truncate(time.Second)),
			},
		}
		c.Spec = coordinationv1beta1.LeaseCandidateSpec{
			LeaseName: "l", BinaryVersion: versions[random.IntN(4)], EmulationVersion: versions[random.IntN(5)],
			Strategy: own[random.IntN(12)/11],
			PingTime: ago(time.Second, 4900*time.Millisecond, 5200*time.Millisecond, 20*time.Minute),
			RenewTime: ago(time.Second, 3*time.Second, 4800*time.Millisecond, 5100*time.Millisecond, 16*time.Minute,
				31*time.Minute),
		}
		if calm == 1 {
			c.Spec.PingTime, c.Spec.RenewTime = ago(4*time.Second), &metav1.MicroTime{Time: now.Add(-time.Second)}
		}
		r.Candidates = append(r.Candidates, c)
	}
	if random.IntN(4) == 0 {
		return r
	}
	r.Lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "l"}}
	spec := &r.Lease.Spec
	spec.RenewTime = ago(time.Second, 4900*time.Millisecond, 5100*time.Millisecond)
	holders := append(names, "other", "")
	for _, field := range []**string{&spec.HolderIdentity, &spec.PreferredHolder} {
		if random.IntN(4) > 0 {
			*field = &holders[random.IntN(len(holders))]
		}
	}
	if random.IntN(4) > 0 {
		spec.Strategy = &own[random.IntN(4)/3]
		seconds := int32(5)
		spec.LeaseDurationSeconds, spec.AcquireTime = &seconds, ago(time.Hour)
	}
	return r
}

var errPanic = errors.New("Kubernetes panics")

// theirStep returns the candidates that Kubernetes pings, and the Lease that it writes, or nil.
func theirStep(t *testing.T, r *leaseelection.Round) (pinged []string, lease *coordinationv1.LeaseSpec, err error) {
	t.Helper()
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	leases, candidates := factory.Coordination().V1().Leases(), factory.Coordination().V1beta1().LeaseCandidates()
	controller, err := leaderelection.NewController(leases, candidates, client.CoordinationV1(),
		client.CoordinationV1beta1())
	if err != nil {
		t.Fatal(err)
	}
	field := reflect.ValueOf(controller).Elem().FieldByName("clock")
	*(*clock.Clock)(unsafe.Pointer(field.UnsafeAddr())) = clocktesting.NewFakeClock(r.Now)
	if r.Lease != nil {
		_ = leases.Informer().GetIndexer().Add(r.Lease)
		_ = client.Tracker().Add(r.Lease)
	}
	for _, c := range r.Candidates {
		_ = candidates.Informer().GetIndexer().Add(c)
		_ = client.Tracker().Add(c)
	}
	func() {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%w: %v", errPanic, p)
			}
		}()
		_, err = reconcileElectionStep(controller, t.Context(), types.NamespacedName{Namespace: "ns", Name: "l"})
	}()
	for _, c := range r.Candidates {
		now, getErr := client.CoordinationV1beta1().LeaseCandidates("ns").Get(t.Context(), c.Name, metav1.GetOptions{})
		if getErr != nil {
			t.Fatal(getErr)
		}
		if !reflect.DeepEqual(now.Spec.PingTime, c.Spec.PingTime) {
			pinged = append(pinged, c.Name)
		}
	}
	now, getErr := client.CoordinationV1().Leases("ns").Get(t.Context(), "l", metav1.GetOptions{})
	if getErr == nil && (r.Lease == nil || !reflect.DeepEqual(now.Spec, r.Lease.Spec)) {
		lease = &now.Spec
	}
	return pinged, lease, err
}
