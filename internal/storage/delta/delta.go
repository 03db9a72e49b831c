// Package delta compresses objects that are alike: each is told against text that both sides know, and what it has in
// common with it costs a few bytes. It knows nothing of what the text says, but that uids are hexadecimal digits.
package delta

import (
	"encoding/binary"
	"errors"
)

// ErrCorrupt is of bytes that Pack has not made of anything with this base.
var ErrCorrupt = errors.New("these bytes were not packed with this base")

// Base is text that other objects are told against: what they have in common with it costs a few bytes in each. It is
// immutable once it is in use.
//
// compress/flate can begin with a dictionary too, but prepares its tables, half a megabyte, for each object anew.
type Base struct {
	text  []byte // of one object or more
	at    []uint16
	shift int // of a gram, for its place in at
}

const (
	// Most is the most text of a base: positions are two bytes.
	Most = 1<<16 - 1
	// ownBits is that of the table by which an object finds text of its own again.
	ownBits = 10
	// atOnce is for how many bytes Unpack believes what it is told of their number.
	atOnce = 4 << 20
	// grain is the shortest text that is found, in bytes.
	grain = 8
)

// New returns a base of text, which is not changed from here on. It finds pieces of the text by a table of 1<<bits
// elements of two bytes: the more there are, the fewer it forgets. bits is 16 at the most, and what Pack makes depends
// on it; Unpack goes by the text alone.
func New(text []byte, bits int) *Base {
	b := &Base{text: text, at: make([]uint16, 1<<bits), shift: 64 - bits}
	for i := 0; i+grain <= len(text) && i < Most; i++ {
		b.at[gram(text[i:])>>b.shift] = uint16(i + 1)
	}
	return b
}

// Text returns what the base is made of: read only.
func (b *Base) Text() []byte { return b.text }

// gram returns a number of the first bytes of a text, whose upper bits say where it is in a table.
func gram(text []byte) uint64 { return binary.LittleEndian.Uint64(text) * 0x9E3779B97F4A7C15 }

// Pack appends src, told against the base, to dst: bytes of its own and pieces of what is known in turn. Known is the
// base, and after it src so far: an object says its name and its owner's uid more than once. Each is told by its
// length, and a piece by how far it is from where the last one of the base would go on, if what stands between were as
// long in the base.
func (b *Base) Pack(dst, src []byte) []byte {
	var seen [1 << ownBits]uint16
	own, next := 0, 0 // where the bytes begin that are not told yet, and where in the base that would be
	for i := 0; i+grain <= len(src); {
		from := next + i - own // most differences are of the same length
		length := b.match(src[i:], from)
		gram := gram(src[i:])
		if length < grain {
			from = int(b.at[gram>>b.shift]) - 1
			length = b.match(src[i:], from)
		}
		again := &seen[gram>>(64-ownBits)]
		if at := int(*again) - 1; at >= 0 {
			if n := common(src[at:i], src[i:]); n > length {
				from, length = len(b.text)+at, n
			}
		}
		if length < grain {
			*again = uint16(i + 1)
			i++
			continue
		}
		for i > own && b.precedes(src, from, length, i) {
			i, from, length = i-1, from-1, length+1
		}
		dst = appendOwn(dst, src[own:i])
		dst = binary.AppendUvarint(dst, uint64(length))
		next += i - own
		dst = binary.AppendVarint(dst, int64(from-next))
		if next += length; from < len(b.text) {
			next = from + length
		}
		i += length
		own = i
	}
	return appendOwn(dst, src[own:])
}

// match returns how much of src stands in the base at from.
func (b *Base) match(src []byte, from int) int {
	if from < 0 || from >= len(b.text) {
		return 0
	}
	return common(b.text[from:], src)
}

func common(a, b []byte) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// precedes reports whether a piece that begins at i of src may begin a byte sooner, also where it is from.
func (b *Base) precedes(src []byte, from, length, i int) bool {
	if from < len(b.text) {
		return from > 0 && src[i-1] == b.text[from-1]
	}
	from -= len(b.text)
	return from > 0 && src[i-1] == src[from-1] && from+length < i // it ends before it is told
}

// Unpack returns what was packed, of a size in bytes, or ErrCorrupt.
func (b *Base) Unpack(packed []byte, size int) ([]byte, error) {
	out := make([]byte, 0, min(size, atOnce))
	next := 0
	for {
		before, ok := len(out), false
		if out, packed, ok = readOwn(out, packed); !ok || len(out) > size {
			return nil, ErrCorrupt
		}
		if len(packed) == 0 && len(out) == size {
			return out, nil
		}
		next += len(out) - before
		length, n := binary.Uvarint(packed)
		if n <= 0 || length > uint64(size-len(out)) {
			return nil, ErrCorrupt
		}
		away, m := binary.Varint(packed[n:])
		if m <= 0 {
			return nil, ErrCorrupt
		}
		packed = packed[n+m:]
		text, from, to := b.text, next+int(away), next+int(away)+int(length)
		if next += int(length); from >= len(text) {
			text, from, to = out, from-len(text), to-len(text)
		} else {
			next = to
		}
		if from < 0 || to < from || to > len(text) {
			return nil, ErrCorrupt
		}
		out = append(out, text[from:to]...)
	}
}
