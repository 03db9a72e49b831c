package watchcache

import (
	"bytes"
	"testing"
)

// FuzzDelta has texts told against others and back.
func FuzzDelta(f *testing.F) {
	f.Add([]byte(""), []byte(""))
	f.Add([]byte("short"), []byte("short"))
	f.Add(realistic("a", 2000), realistic("b", 2500))
	f.Add([]byte("0123456789abcdef0123456789"), []byte("x0123456789abcdef!0123456789abcdef0123456789"))
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
