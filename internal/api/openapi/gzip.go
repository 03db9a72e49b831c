package openapi

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"io"

	"github.com/bowsprit/bowsprit/internal/request/reuse"
)

// The v2 document is assembled from parts that are compressed and cached one by one. A client that accepts gzip gets
// one gzip member: deflate streams that end on a byte boundary without a final block can be concatenated (RFC 1951,
// section 2.3; RFC 1952), and the checksum of the whole follows from the parts' checksums.

// part is a compressed piece of a document: a deflate stream without its end, then the CRC-32 and the length of its
// contents, 4 and 8 bytes.
type part []byte

const partTrailer = 4 + 8

// compressors pools compressors, because each needs a megabyte.
var compressors = reuse.New(func() *flate.Writer {
	z, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return z
}, func(z *flate.Writer) { z.Reset(nil) })

// newPart compresses data.
func newPart(data []byte) part {
	var b bytes.Buffer
	z := compressors.Get()
	defer compressors.Put(z)
	z.Reset(&b)
	_, _ = z.Write(data) // a buffer accepts everything
	_ = z.Flush()        // to a byte boundary; Close would write a final block
	out := binary.BigEndian.AppendUint32(b.Bytes(), crc32.ChecksumIEEE(data))
	return binary.BigEndian.AppendUint64(out, uint64(len(data)))
}

func (p part) split() (stream []byte, sum uint32, size int64) {
	stream, trailer := p[:len(p)-partTrailer], p[len(p)-partTrailer:]
	return stream, binary.BigEndian.Uint32(trailer), int64(binary.BigEndian.Uint64(trailer[4:]))
}

// lastBlock ends a deflate stream: an empty stored block with the final flag.
var lastBlock = []byte{1, 0, 0, 0xff, 0xff}

// partsWriter writes parts as one document, plain or as gzip. It keeps the first error.
type partsWriter struct {
	w       io.Writer
	gzipped bool
	sum     uint32
	size    int64
	loose   []byte // bytes from Write since the last part
	err     error
}

func newPartsWriter(w io.Writer, gzipped bool) *partsWriter {
	out := &partsWriter{w: w, gzipped: gzipped}
	if gzipped {
		out.raw([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 0xff}) // no name, no time, fastest compression, unknown system
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

// Write keeps p until the next part, to compress consecutive writes together.
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

// gather makes a part, used once, of the bytes from Write.
func (w *partsWriter) gather() {
	if len(w.loose) > 0 {
		p := newPart(w.loose)
		w.loose = w.loose[:0]
		w.part(p)
	}
}

// Close writes the end of the document.
func (w *partsWriter) Close() error {
	w.gather()
	if w.gzipped {
		end := binary.LittleEndian.AppendUint32(bytes.Clone(lastBlock), w.sum)
		w.raw(binary.LittleEndian.AppendUint32(end, uint32(w.size)))
	}
	return w.err
}

// combineCRC returns the CRC-32 of a text with checksum a followed by a text with checksum b and size bytes. Appending
// a zero bit is a linear map of the checksum's 32 bits; it is applied 8*size times by squaring its matrix.
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
	for range 3 { // three squarings: one byte is eight bits
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
