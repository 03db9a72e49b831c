package watchcache

import "encoding/binary"

// base is text that other objects are told against: what they have in common with it costs a few bytes in each. It is
// immutable once it is in use.
//
// compress/flate can begin with a dictionary too, but prepares its tables, half a megabyte, for each object anew.
type base struct {
	text []byte // of one object or more
	at   []uint16
}

const (
	// baseMost is the most text of a base: positions are two bytes.
	baseMost = 1<<16 - 1
	// baseBits is the size of the table by which a base finds text, as a power of two.
	baseBits = 12
	// grain is the shortest text that is found, in bytes.
	grain = 8
)

func newBase(text []byte) *base {
	b := &base{text: text, at: make([]uint16, 1<<baseBits)}
	for i := 0; i+grain <= len(text) && i < baseMost; i++ {
		b.at[gram(text[i:])] = uint16(i + 1)
	}
	return b
}

// gram returns where in the table the first bytes of a text are.
func gram(text []byte) uint64 {
	return binary.LittleEndian.Uint64(text) * 0x9E3779B97F4A7C15 >> (64 - baseBits)
}

// pack appends src, told against the base, to dst: bytes of its own and pieces of the base in turn. Each is told by its
// length, and a piece by how far it is from where the last one would go on, if what stands between were as long in the
// base.
func (b *base) pack(dst, src []byte) []byte {
	own, next := 0, 0 // where the bytes begin that are not told yet, and where in the base that would be
	for i := 0; i+grain <= len(src); {
		from := next + i - own // most differences are of the same length
		length := b.match(src[i:], from)
		if length < grain {
			from = int(b.at[gram(src[i:])]) - 1
			length = b.match(src[i:], from)
		}
		if length < grain {
			i++
			continue
		}
		for i > own && from > 0 && src[i-1] == b.text[from-1] {
			i, from, length = i-1, from-1, length+1
		}
		dst = binary.AppendUvarint(dst, uint64(i-own))
		dst = append(dst, src[own:i]...)
		dst = binary.AppendUvarint(dst, uint64(length))
		dst = binary.AppendVarint(dst, int64(from-(next+i-own)))
		own, next = i+length, from+length
		i = own
	}
	dst = binary.AppendUvarint(dst, uint64(len(src)-own))
	return append(dst, src[own:]...)
}

// match returns how much of src stands in the base at from.
func (b *base) match(src []byte, from int) (n int) {
	if from < 0 || from >= len(b.text) {
		return 0
	}
	text := b.text[from:]
	for n < len(src) && n < len(text) && src[n] == text[n] {
		n++
	}
	return n
}

// unpack returns what was packed, of a size.
func (b *base) unpack(packed []byte, size int) []byte {
	out := make([]byte, 0, size)
	next := 0
	for {
		length, n := binary.Uvarint(packed)
		packed = packed[n:]
		out = append(out, packed[:length]...)
		if packed = packed[length:]; len(packed) == 0 {
			return out
		}
		next += int(length)
		length, n = binary.Uvarint(packed)
		packed = packed[n:]
		away, n := binary.Varint(packed)
		packed = packed[n:]
		from := next + int(away)
		out = append(out, b.text[from:from+int(length)]...)
		next = from + int(length)
	}
}
