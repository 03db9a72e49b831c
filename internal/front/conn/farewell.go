package conn

import (
	"encoding/binary"
	"slices"
	"sync"
)

// farewell follows the frames of an HTTP/2 connection (RFC 9113) to find the moment after which the client needs no
// more bytes: the server has sent GOAWAY and the last frame of each response.
//
// At that moment the HTTP/2 server itself waits for a second, because closing a connection with unread bytes from the
// client in the kernel resets it, and discards data that the client has not read yet. A gatherer instead closes only
// its own direction. The client reads the rest, finds the end, and closes the connection within one round trip.
type farewell struct {
	in, out frames // in belongs to the reading goroutine, out to the writing goroutine
	ending  bool   // the last frame that the client needs has begun; belongs to the writing goroutine

	mu   sync.Mutex
	open []uint32 // streams without a complete response; at most MaxConcurrentStreams plus refused streams
	last uint32   // the highest stream opened by the client
	gone bool     // GOAWAY has been written: later streams are ignored
}

// The relevant parts of RFC 9113, section 6.
const (
	prefaceSize = 24 // size of the client's preface before its first frame

	frameHeaderSize = 9 // length uint24, type, flags, stream uint32
	goAwayHeadSize  = frameHeaderSize + 4

	frameHeaders = 1
	frameReset   = 3
	frameGoAway  = 7
	endStream    = 1
)

func newFarewell() farewell { return farewell{in: frames{skip: prefaceSize}} }

// read processes bytes from the client.
func (f *farewell) read(p []byte) {
	for {
		frame, rest := f.in.next(p)
		if frame == nil {
			return
		}
		p = rest
		switch stream := frame.stream(); frame.kind() {
		case frameHeaders:
			f.begin(stream)
		case frameReset:
			f.end(stream)
		}
	}
}

// written processes bytes for the client, and reports whether they complete the last frame that it needs. A frame may
// come in several pieces, because the HTTP/2 server's own buffer cuts them anywhere.
func (f *farewell) written(p []byte) (complete bool) {
	for {
		frame, rest := f.out.next(p)
		if f.ending && f.out.skip == 0 {
			f.ending, complete = false, true
		}
		if frame == nil {
			return complete
		}
		p = rest
		switch stream := frame.stream(); {
		case frame.kind() == frameGoAway:
			f.ending = f.leave(frame.lastStream())
		case frame.kind() == frameReset, frame.kind() <= frameHeaders && frame.flags()&endStream != 0:
			f.ending = f.end(stream)
		}
	}
}

// begin handles HEADERS from the client; trailers belong to an open stream.
func (f *farewell) begin(stream uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.gone && stream > f.last {
		f.open, f.last = append(f.open, stream), stream
	}
}

func (f *farewell) end(stream uint32) (complete bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(f.open, stream); i >= 0 {
		f.open = slices.Delete(f.open, i, i+1)
	}
	return f.gone && len(f.open) == 0
}

// leave handles GOAWAY: streams after last get no response.
func (f *farewell) leave(last uint32) (complete bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = true
	f.open = slices.DeleteFunc(f.open, func(stream uint32) bool { return stream > last })
	return len(f.open) == 0
}

// frames cuts a direction of a connection into its frames.
type frames struct {
	skip int // bytes before the next frame
	head frameHead
	have int // length of the present part of head
}

// frameHead is the header of a frame, with the first four bytes of GOAWAY's payload.
type frameHead [goAwayHeadSize]byte

// next returns the header of the next frame in p and the bytes behind it. The header is nil if p does not complete it,
// and valid until the next call.
func (f *frames) next(p []byte) (*frameHead, []byte) {
	passed := min(f.skip, len(p))
	f.skip, p = f.skip-passed, p[passed:]
	for {
		size := frameHeaderSize
		if f.have >= frameHeaderSize && f.head.kind() == frameGoAway {
			size = goAwayHeadSize
		}
		n := copy(f.head[f.have:size], p)
		f.have, p = f.have+n, p[n:]
		switch {
		case f.have < size:
			return nil, nil
		case size == frameHeaderSize && f.head.kind() == frameGoAway:
			continue
		}
		f.skip, f.have = max(frameHeaderSize+f.head.length()-size, 0), 0
		return &f.head, p
	}
}

func (h *frameHead) length() int { return int(h[0])<<16 | int(h[1])<<8 | int(h[2]) }

func (h *frameHead) kind() byte { return h[3] }

func (h *frameHead) flags() byte { return h[4] }

func (h *frameHead) stream() uint32 { return binary.BigEndian.Uint32(h[5:]) &^ (1 << 31) }

// lastStream returns the last stream ID of a GOAWAY frame.
func (h *frameHead) lastStream() uint32 {
	return binary.BigEndian.Uint32(h[frameHeaderSize:]) &^ (1 << 31)
}
