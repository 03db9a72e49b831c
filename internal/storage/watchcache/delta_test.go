package watchcache

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// FuzzDelta has texts told against others and back.
func FuzzDelta(f *testing.F) {
	f.Add([]byte(""), []byte(""))
	f.Add([]byte("short"), []byte("short"))
	f.Add(realistic("a", 2000), realistic("b", 2500))
	f.Add([]byte("0123456789abcdef0123456789"), []byte("x0123456789abcdef!0123456789abcdef0123456789"))
	f.Add([]byte("0123456789abcdef"), []byte(`{"a":"3bbd3da4-e529-4368-9d3a-0357fbcb53b8","b":"3bbd3da4-e529-4368-9d3a-0357fbcb53b8"}`))
	f.Fuzz(func(t *testing.T, text, src []byte) {
		if len(text) > baseMost {
			return
		}
		b := newBase(text)
		if got := b.unpack(b.pack(nil, src), len(src)); !bytes.Equal(got, src) {
			t.Errorf("%q came back as %q", src, got)
		}
	})
}

// Of objects that differ in names and values little is told.
func TestDeltaIsSmall(t *testing.T) {
	t.Parallel()
	b := newBase(realistic("first-name", 3000))
	src := realistic("other", 3000)
	if packed := b.pack(nil, src); len(packed) > len(src)/4 {
		t.Errorf("%d of %d bytes", len(packed), len(src))
	}
}

// A uid takes half its digits, and the second time three bytes.
func TestDeltaOfUID(t *testing.T) {
	t.Parallel()
	const uid = "3bbd3da4-e529-4368-9d3a-0357fbcb53b8"
	for own, most := range map[string]int{
		uid: 19, uid[1:]: 19, uid[:34]: 18, uid[9:]: 15, "0123456789abcdef0": 11, // without dashes
		"-bd3da4-e529-4368": 18, "3bbd3da4-e529-43x8-9d3a-0357fbcb53b8": 38, "1234-567890-123456": 20, // of something else
		uid + uid: 74, uid + "/" + uid: 46, "abc": 4, "": 1,
	} {
		packed := newBase(nil).pack(nil, []byte(own))
		if len(packed) > most {
			t.Errorf("%s takes %d bytes, more than %d", own, len(packed), most)
		}
		if got := newBase(nil).unpack(packed, len(own)); string(got) != own {
			t.Errorf("%s came back as %s", own, got)
		}
	}
}

func BenchmarkDelta(b *testing.B) {
	base, src := newBase(realistic("first-name", 3000)), realistic("other", 3000)
	packed := base.pack(nil, src)
	b.Run("pack", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		buffer := make([]byte, 0, 4096)
		for b.Loop() {
			buffer = base.pack(buffer[:0], src)
		}
		b.ReportMetric(float64(len(packed)), "packed-B")
	})
	b.Run("unpack", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		b.ReportAllocs()
		for b.Loop() {
			_ = base.unpack(packed, len(src))
		}
	})
}

// The base of a family gets what most objects have, also if the first have not, as the first states of a pod.
func TestFamilyLearns(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	later := make([]byte, 700)
	for i := range later {
		later[i] = 'a' + byte(random.IntN(26))
	}
	f := family{}
	f.pack(realistic("first", 3000))
	for i := range 2 * renewEvery {
		raw := append(realistic(fmt.Sprint("pod", i), 3000), later...)
		packed := f.pack(raw)
		if i > renewEvery && len(packed.data) > 100 {
			t.Fatalf("object %d takes %d bytes", i, len(packed.data))
		}
		if got := packed.base.unpack(packed.data, len(raw)); !bytes.Equal(got, raw) {
			t.Fatalf("%q came back as %q", raw, got)
		}
	}
}
