package openapi

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"io"
	"sync"
)

// The v2 document is put together from parts that are compressed one by one and kept so. A client that takes gzip gets
// one gzip member made of them: deflate streams that end on a byte boundary without saying that they are the last may
// stand one behind the other (RFC 1951, section 2.3; RFC 1952), and the checksum of the whole follows from those of
// the parts.

// part is a compressed piece of a document: a deflate stream without its end, and behind it the CRC-32 and the length
// of what it holds, 4 and 8 bytes.
type part []byte

const partTrailer = 4 + 8

// compressors are kept because each needs a megabyte.
var compressors = sync.Pool{New: func() any {
	z, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return z
}}

// newPart compresses data.
func newPart(data []byte) part {
	var b bytes.Buffer
	z := compressors.Get().(*flate.Writer)
	defer compressors.Put(z)
	z.Reset(&b)
	_, _ = z.Write(data) // a buffer takes everything
	_ = z.Flush()        // to a byte boundary; Close would say that nothing follows
	out := binary.BigEndian.AppendUint32(b.Bytes(), crc32.ChecksumIEEE(data))
	return binary.BigEndian.AppendUint64(out, uint64(len(data)))
}

func (p part) split() (stream []byte, sum uint32, size int64) {
	stream, trailer := p[:len(p)-partTrailer], p[len(p)-partTrailer:]
	return stream, binary.BigEndian.Uint32(trailer), int64(binary.BigEndian.Uint64(trailer[4:]))
}

// lastBlock ends a deflate stream: an empty stored block that says that it is the last.
var lastBlock = []byte{1, 0, 0, 0xff, 0xff}

// partsWriter writes parts as one document, plain or as gzip. The first error stays.
type partsWriter struct {
	w       io.Writer
	gzipped bool
	sum     uint32
	size    int64
	loose   []byte // what Write was given since the last part
	err     error
}

func newPartsWriter(w io.Writer, gzipped bool) *partsWriter {
	out := &partsWriter{w: w, gzipped: gzipped}
	if gzipped {
		out.raw([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 0xff}) // no name, no time, made fast, on whatever system
	}
	return out
}

func (w *partsWriter) raw(p []byte) {
	if w.err == nil {
		_, w.err = w.w.Write(p)
	}
}

// part writes one part.
func (w *partsWriter) part(p part) {
	w.gather()
	stream, sum, size := p.split()
	if !w.gzipped {
		if w.err == nil {
			_, w.err = io.Copy(w.w,
				flate.NewReader(io.MultiReader(bytes.NewReader(stream), bytes.NewReader(lastBlock))))
		}
		return
	}
	w.raw(stream)
	w.sum = combineCRC(w.sum, sum, size)
	w.size += size
}

// Write keeps p until the next part, to compress it together with what else is written before that.
func (w *partsWriter) Write(p []byte) (int, error) {
	if !w.gzipped {
		w.raw(p)
		return len(p), w.err
	}
	if w.loose = append(w.loose, p...); len(w.loose) > 256<<10 {
		w.gather()
	}
	return len(p), w.err
}

// gather makes a part of what Write was given, which is used once.
func (w *partsWriter) gather() {
	if len(w.loose) > 0 {
		p := newPart(w.loose)
		w.loose = w.loose[:0]
		w.part(p)
	}
}

// Close writes what belongs behind the last part.
func (w *partsWriter) Close() error {
	w.gather()
	if w.gzipped {
		end := binary.LittleEndian.AppendUint32(bytes.Clone(lastBlock), w.sum)
		w.raw(binary.LittleEndian.AppendUint32(end, uint32(w.size)))
	}
	return w.err
}

// combineCRC returns the CRC-32 of a text of checksum a, followed by one of checksum b and size bytes. Appending a
// zero bit is a linear map of the checksum's 32 bits; it is applied 8*size times by squaring its matrix.
func combineCRC(a, b uint32, size int64) uint32 {
	var zero [32]uint32 // the map for one zero bit: column i is the image of bit i
	zero[0] = crc32.IEEE
	for i := 1; i < 32; i++ {
		zero[i] = 1 << (i - 1)
	}
	apply := func(m *[32]uint32, v uint32) (out uint32) {
		for i := 0; v != 0; i, v = i+1, v>>1 {
			if v&1 != 0 {
				out ^= m[i]
			}
		}
		return out
	}
	square := func(m *[32]uint32) (out [32]uint32) {
		for i := range out {
			out[i] = apply(m, m[i])
		}
		return out
	}
	for range 3 { // eight bits are a byte
		zero = square(&zero)
	}
	for ; size > 0; size >>= 1 {
		if size&1 != 0 {
			a = apply(&zero, a)
		}
		zero = square(&zero)
	}
	return a ^ b
}
