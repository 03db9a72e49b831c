package watchcache

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestDeltaPackerLearns checks that the base learns the parts common to most objects even if the first objects lack
// them, like the first states of a pod.
func TestDeltaPackerLearns(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	later := make([]byte, 700)
	for i := range later {
		later[i] = 'a' + byte(random.IntN(26))
	}
	f := deltaPacker{}
	f.pack(realistic("first", 3000))
	for i := range 2 * renewEvery {
		raw := append(realistic(fmt.Sprint("pod", i), 3000), later...)
		packed := f.pack(raw)
		if i > renewEvery && len(packed.data) > 100 {
			t.Fatalf("object %d takes %d bytes", i, len(packed.data))
		}
		if got, err := packed.base.Unpack(packed.data, len(raw)); !bytes.Equal(got, raw) {
			t.Fatalf("%q came back as %q, %v", raw, got, err)
		}
	}
}
