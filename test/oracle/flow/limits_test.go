package flow

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"k8s.io/apiserver/pkg/util/flowcontrol"

	"github.com/bowsprit/bowsprit/internal/front/flow"
)

// claim is the type of both sides: three numbers.
type claim struct{ target, lowest, highest float64 }

//go:linkname computeConcurrencyAllocation k8s.io/apiserver/pkg/util/flowcontrol.computeConcurrencyAllocation
func computeConcurrencyAllocation(sum int, items []claim) ([]float64, float64, error)

//go:linkname allocate github.com/bowsprit/bowsprit/internal/front/flow.allocate
func allocate(sum float64, claims []claim) (parts []float64, fair float64, ok bool)

// TestAllocation divides seats among levels with random demands and bounds.
func TestAllocation(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	solved := 0
	for range cases(t, 20_000) {
		claims, low, high := make([]claim, 1+r.IntN(9)), 0.0, 0.0
		for i := range claims {
			lowest := float64(r.IntN(30))
			claims[i] = claim{lowest + float64(r.IntN(50))*r.Float64(), lowest, lowest + float64(r.IntN(100))}
			low, high = low+lowest, high+claims[i].highest
		}
		sum := int(low) - 2 + r.IntN(int(high-low)+5)
		want, _, err := computeConcurrencyAllocation(sum, claims)
		got, _, ok := allocate(float64(sum), claims)
		if ok != (err == nil) {
			t.Fatalf("%d of %v: ok %v, want %v", sum, claims, ok, err)
		}
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-5 {
				t.Fatalf("%d of %v: %v, want %v", sum, claims, got, want)
			}
		}
		if ok {
			solved++
		}
	}
	if solved == 0 {
		t.Error("no case had a solution")
	}
}

//go:linkname newDroppedRequestsTracker k8s.io/apiserver/pkg/util/flowcontrol.newDroppedRequestsTracker
func newDroppedRequestsTracker(now func() time.Time) unsafe.Pointer

//go:linkname recordDropped k8s.io/apiserver/pkg/util/flowcontrol.(*droppedRequestsTracker).RecordDroppedRequest
func recordDropped(tracker unsafe.Pointer, level string)

//go:linkname getRetryAfter k8s.io/apiserver/pkg/util/flowcontrol.(*droppedRequestsTracker).GetRetryAfter
func getRetryAfter(tracker unsafe.Pointer, level string) int64

//go:linkname newLevel github.com/bowsprit/bowsprit/internal/front/flow.(*Controller).newLevel
func newLevel(c *flow.Controller) unsafe.Pointer

//go:linkname drop github.com/bowsprit/bowsprit/internal/front/flow.(*levelState).drop
func drop(level unsafe.Pointer, second int64)

//go:linkname retryAfter github.com/bowsprit/bowsprit/internal/front/flow.(*levelState).retryAfter
func retryAfter(level unsafe.Pointer) int

// TestRetryAfter refuses requests at random, in bursts and with pauses, and compares the Retry-After of the next one.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	_ = flowcontrol.NewDroppedRequestsTracker() // links the package
	for seed := range cases(t, 100) {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		now := time.Unix(1e9, 0)
		theirs := newDroppedRequestsTracker(func() time.Time { return now })
		ours := newLevel(flow.New(flow.Options{Total: 1}))
		most := 0
		for range 400 {
			for range r.IntN(1 + r.IntN(60)) {
				recordDropped(theirs, "level")
				drop(ours, now.Unix())
				if got, want := retryAfter(ours), int(getRetryAfter(theirs, "level")); got != want {
					t.Fatalf("seed %d: retry after %d, want %d", seed, got, want)
				}
				most = max(most, retryAfter(ours))
			}
			now = now.Add(time.Duration(r.IntN(5)) * time.Second / 2)
		}
		if most < 2 {
			t.Errorf("seed %d: clients are never asked to stay away for long", seed)
		}
	}
}
