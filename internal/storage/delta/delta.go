// Package delta compresses similar objects: each is encoded relative to a text that both sides have, so that common
// parts cost a few bytes. Of the content it only knows that uids are hexadecimal digits.
package delta

import (
	"encoding/binary"
	"errors"
)

// ErrCorrupt is of bytes that Pack has not made of anything with this base.
var ErrCorrupt = errors.New("these bytes were not packed with this base")

// Base is the text that objects are encoded against: each part in common with it costs a few bytes. It is immutable
// once it is in use.
//
// compress/flate also supports dictionaries, but builds its tables, half a megabyte, anew for each object.
type Base struct {
	text  []byte // of one object or more
	at    []uint16
	shift int // maps a gram to its index in at
}

const (
	// Most is the most text of a base: positions are two bytes.
	Most = 1<<16 - 1
	// ownBits is the size of the table by which an object finds its own earlier text.
	ownBits = 10
	// atOnce is the number of bytes that Unpack allocates before it has seen them.
	atOnce = 4 << 20
	// grain is the shortest match, in bytes.
	grain = 8
)

// New returns a base of text, which must not be changed afterwards. It finds matches by a table of 1<<bits elements of
// two bytes: a larger table finds more. bits is at most 16. The output of Pack depends on it; Unpack needs only the
// text.
func New(text []byte, bits int) *Base {
	b := &Base{text: text, at: make([]uint16, 1<<bits), shift: 64 - bits}
	for i := 0; i+grain <= len(text) && i < Most; i++ {
		b.at[gram(text[i:])>>b.shift] = uint16(i + 1)
	}
	return b
}

// Text returns the text of the base, which must not be modified.
func (b *Base) Text() []byte { return b.text }

// gram returns a hash of the first bytes of a text; its upper bits are the table index.
func gram(text []byte) uint64 { return binary.LittleEndian.Uint64(text) * 0x9E3779B97F4A7C15 }

// Pack appends src, encoded against the base, to dst: literals and matches in turn. Matches are in the base, or in the
// earlier part of src: an object repeats its name and its owner's uid. Literals and matches are encoded by their
// length, and a match also by its distance from the expected position: the end of the last match in the base, plus the
// length of the literals in between.
func (b *Base) Pack(dst, src []byte) []byte {
	var seen [1 << ownBits]uint16
	own, next := 0, 0 // start of the pending literals, and their position in the base
	for i := 0; i+grain <= len(src); {
		from := next + i - own // most differences have equal lengths
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

// match returns the length of the match of src with the base at from.
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

// precedes reports whether a match at i of src can be extended by one byte to the left.
func (b *Base) precedes(src []byte, from, length, i int) bool {
	if from < len(b.text) {
		return from > 0 && src[i-1] == b.text[from-1]
	}
	from -= len(b.text)
	return from > 0 && src[i-1] == src[from-1] && from+length < i // the match must end before the current position
}

// Unpack returns the original of packed, with the given size in bytes, or ErrCorrupt.
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
