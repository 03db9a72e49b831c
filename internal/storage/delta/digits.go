package delta

import (
	"bytes"
	"encoding/binary"
)

// Literals are encoded by twice their length. An additional one marks a literal that is most of a uid: hexadecimal
// digits, two in a byte, after a byte with the positions of the dashes. Objects share no uids, and an event has two of
// them.

const (
	leastDigits = 16 // below this it does not pay
	groupLength = 5  // of four digits and a dash
	mostDashes  = 4
	hexDigits   = "0123456789abcdef"
)

// appendOwn appends bytes to dst as readOwn reads them.
func appendOwn(dst, own []byte) []byte {
	first, dashes, ok := digits(own)
	if !ok {
		dst = binary.AppendUvarint(dst, uint64(len(own))<<1)
		return append(dst, own...)
	}
	dst = binary.AppendUvarint(dst, uint64(len(own))<<1|1)
	dst = append(dst, byte(first<<3|dashes))
	half, n := byte(0), 0
	for i, c := range own {
		if dashed(i, first, dashes) {
			continue
		}
		if half = half<<4 | byte(bytes.IndexByte([]byte(hexDigits), c)); n%2 == 1 {
			dst = append(dst, half)
		}
		n++
	}
	if n%2 == 1 {
		dst = append(dst, half<<4)
	}
	return dst
}

// readOwn decodes the literal of appendOwn at the start of packed, appends it to out, and returns the rest; ok is false
// if it is invalid.
func readOwn(out, packed []byte) (more, rest []byte, ok bool) {
	head, n := binary.Uvarint(packed)
	if n <= 0 || head>>2 > uint64(len(packed)) { // two digits take a byte, and a dash less
		return nil, nil, false
	}
	packed = packed[n:]
	length := int(head >> 1)
	if head&1 == 0 {
		if length > len(packed) {
			return nil, nil, false
		}
		return append(out, packed[:length]...), packed[length:], true
	}
	if len(packed) == 0 {
		return nil, nil, false
	}
	first, dashes := int(packed[0]>>3), int(packed[0]&7)
	packed = packed[1:]
	n = 0
	for i := range length {
		if dashed(i, first, dashes) {
			out = append(out, '-')
			continue
		}
		if n/2 >= len(packed) {
			return nil, nil, false
		}
		out = append(out, hexDigits[packed[n/2]>>(4-n%2*4)&15])
		n++
	}
	return out, packed[(n+1)/2:], true
}

// digits reports whether bytes are digits with dashes as in a uid. It returns the position of the first dash, and the
// number of dashes.
func digits(own []byte) (first, dashes int, ok bool) {
	if len(own) < leastDigits {
		return 0, 0, false
	}
	first = bytes.IndexByte(own[:leastDigits], '-')
	if first < 0 {
		first = 0
	} else {
		for at := first; at < len(own) && own[at] == '-' && dashes < mostDashes; at += groupLength {
			dashes++
		}
	}
	for i, c := range own {
		if !dashed(i, first, dashes) && (c < '0' || c > '9' && c < 'a' || c > 'f') {
			return 0, 0, false
		}
	}
	return first, dashes, true
}

// dashed reports whether there is a dash at i.
func dashed(i, first, dashes int) bool {
	i -= first
	return i >= 0 && i < dashes*groupLength && i%groupLength == 0
}
