package charge

import "encoding/binary"

// The major types of CBOR, and the additional information that stands for "until a break": RFC 8949, section 3.
const (
	cborBytes, cborText, cborArray, cborMap, cborTag, cborSimple = 2, 3, 4, 5, 6, 7

	indefinite = 31
	// cborNull is the additional information of null, a simple value.
	cborNull = 22
)

// CBOR returns the weight of a CBOR document. Of one that is not well-formed it counts the elements before the fault,
// where the decoder stops too.
func CBOR(data []byte) int64 {
	var c counts
	endless := false // a map has no length
	for i := 0; i < len(data); {
		major, info := data[i]>>5, data[i]&31
		i++
		var n uint64
		switch {
		case info < 24:
			n = uint64(info)
		case info <= 27:
			size := 1 << (info - 24)
			if len(data)-i < size {
				return c.weight(len(data))
			}
			var wide [8]byte
			copy(wide[8-size:], data[i:i+size])
			n = binary.BigEndian.Uint64(wide[:])
			i += size
		case info != indefinite:
			return c.weight(len(data))
		}
		switch major {
		case cborBytes, cborText:
			if info != indefinite {
				if n > uint64(len(data)-i) {
					return c.weight(len(data))
				}
				i += int(n)
			}
			c.strings++
		case cborArray:
			c.lists++
		case cborMap:
			c.objects++
			c.members += int(min(n, uint64(len(data))))
			endless = endless || info == indefinite
		case cborTag:
			continue
		case cborSimple:
			if info == cborNull {
				c.nulls++
			}
		}
		if c.values++; endless {
			c.members++
		}
	}
	return c.weight(len(data))
}
