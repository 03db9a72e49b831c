package delta

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"
)

// FuzzDelta encodes texts against others and decodes them.
func FuzzDelta(f *testing.F) {
	f.Add([]byte(""), []byte(""))
	f.Add([]byte("short"), []byte("short"))
	f.Add(realistic("a", 2000), realistic("b", 2500))
	f.Add([]byte("0123456789abcdef0123456789"), []byte("x0123456789abcdef!0123456789abcdef0123456789"))
	f.Add([]byte("0123456789abcdef"), []byte(`{"a":"3bbd3da4-e529-4368-9d3a-0357fbcb53b8","b":"3bbd3da4-e529-4368-9d3a-0357fbcb53b8"}`))
	f.Fuzz(func(t *testing.T, text, src []byte) {
		if len(text) > Most {
			return
		}
		b := New(text, 12)
		if got, err := b.Unpack(b.Pack(nil, src), len(src)); !bytes.Equal(got, src) {
			t.Errorf("%q came back as %q, %v", src, got, err)
		}
	})
}

// FuzzUnpack decodes arbitrary and damaged input: the result has the given size, or is an error.
func FuzzUnpack(f *testing.F) {
	b := New(realistic("a", 2000), 12)
	f.Add(b.Pack(nil, realistic("b", 2500)), 2500, 0, byte(0))
	f.Add(b.Pack(nil, []byte("3bbd3da4-e529-4368-9d3a-0357fbcb53b8")), 36, 1, byte(0xff))
	f.Add(binary.AppendUvarint(nil, math.MaxUint64), 100, 0, byte(0))
	f.Add([]byte{0}, 0, 0, byte(1))
	f.Fuzz(func(t *testing.T, packed []byte, size, at int, bits byte) {
		size = max(0, min(size, 1<<20))
		if at >= 0 && at < len(packed) {
			packed[at] ^= bits
		}
		if got, err := b.Unpack(packed, size); err == nil && len(got) != size || err != nil && got != nil {
			t.Errorf("%q of %d bytes: %q, %v", packed, size, got, err)
		}
	})
}

// TestUnpackRefuses checks that truncated input, or a wrong size, is rejected.
func TestUnpackRefuses(t *testing.T) {
	t.Parallel()
	b, src := New(realistic("a", 2000), 12), realistic("b", 2500)
	packed := b.Pack(nil, src)
	for n := range len(packed) {
		if _, err := b.Unpack(packed[:n], len(src)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
	for _, size := range []int{0, len(src) - 1, len(src) + 1, 1 << 62} {
		if _, err := b.Unpack(packed, size); !errors.Is(err, ErrCorrupt) {
			t.Errorf("as %d bytes: %v", size, err)
		}
	}
	bomb := appendOwn(nil, []byte("ab")) // doubles with each piece
	for length, next := int64(2), int64(2); length < 1<<40; length, next = 2*length, next+length {
		bomb = binary.AppendVarint(binary.AppendUvarint(bomb, uint64(length)), int64(len(b.Text()))-next)
		bomb = appendOwn(bomb, nil)
	}
	if _, err := b.Unpack(bomb, 1); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a terabyte: %v", err)
	}
	if _, err := New(nil, 12).Unpack(packed, len(src)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("with another base: %v", err)
	}
}

// TestDeltaIsSmall checks that objects that differ only in names and values are small.
func TestDeltaIsSmall(t *testing.T) {
	t.Parallel()
	b := New(realistic("first-name", 3000), 12)
	src := realistic("other", 3000)
	if packed := b.Pack(nil, src); len(packed) > len(src)/4 {
		t.Errorf("%d of %d bytes", len(packed), len(src))
	}
}

// TestDeltaOfUID checks that a uid takes half its digits, and three bytes the second time.
func TestDeltaOfUID(t *testing.T) {
	t.Parallel()
	const uid = "3bbd3da4-e529-4368-9d3a-0357fbcb53b8"
	for own, most := range map[string]int{
		uid: 19, uid[1:]: 19, uid[:34]: 18, uid[9:]: 15, "0123456789abcdef0": 11, // without dashes
		"-bd3da4-e529-4368": 18, "3bbd3da4-e529-43x8-9d3a-0357fbcb53b8": 38, "1234-567890-123456": 20,
		uid + uid: 74, uid + "/" + uid: 46, "abc": 4, "": 1,
	} {
		packed := New(nil, 12).Pack(nil, []byte(own))
		if len(packed) > most {
			t.Errorf("%s takes %d bytes, more than %d", own, len(packed), most)
		}
		if got, err := New(nil, 12).Unpack(packed, len(own)); string(got) != own {
			t.Errorf("%s came back as %s, %v", own, got, err)
		}
	}
}

func BenchmarkDelta(b *testing.B) {
	base, src := New(realistic("first-name", 3000), 12), realistic("other", 3000)
	packed := base.Pack(nil, src)
	b.Run("pack", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		buffer := make([]byte, 0, 4096)
		for b.Loop() {
			buffer = base.Pack(buffer[:0], src)
		}
		b.ReportMetric(float64(len(packed)), "packed-B")
	})
	b.Run("unpack", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		b.ReportAllocs()
		for b.Loop() {
			_, _ = base.Unpack(packed, len(src))
		}
	})
}

// realistic is an object of a size in bytes.
func realistic(name string, size int) []byte {
	out := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{`, name)
	for i := 0; len(out) < size-60; i++ {
		out = fmt.Appendf(out, `"key-%d":"value-%d",`, i, i)
	}
	return append(out, `"last":""}}`...)
}
