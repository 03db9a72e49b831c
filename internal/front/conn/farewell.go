package conn

import (
	"encoding/binary"
	"slices"
	"sync"
)

// farewell follows the frames of an HTTP/2 connection (RFC 9113), to find the moment from which nothing will be written
// to it that its client needs: the server has sent GOAWAY, and the last frame of each answer.
//
// The HTTP/2 server itself waits for a second at that point, because a connection that is closed while unread bytes
// from the client lie in the kernel is reset, and takes with it what the client has not read yet. A gatherer ends only
// its own direction instead. The client reads all there is, finds the end, and closes the connection: within one round
// trip.
type farewell struct {
	in, out frames // in belongs to the goroutine that reads, out to the one that writes
	ending  bool   // the last frame that the client needs has begun; belongs to the goroutine that writes

	mu   sync.Mutex
	open []uint32 // streams of requests whose answer has not ended; at most MaxConcurrentStreams and what is refused
	last uint32   // the highest stream that the client has opened
	gone bool     // GOAWAY has been written: streams that begin from now on are ignored
}

// The parts of RFC 9113, section 6, that matter here.
const (
	prefaceSize = 24 // what a client sends before its first frame

	frameHeaderSize = 9 // length uint24, type, flags, stream uint32
	goAwayHeadSize  = frameHeaderSize + 4

	frameHeaders = 1
	frameReset   = 3
	frameGoAway  = 7
	endStream    = 1
)

func newFarewell() farewell { return farewell{in: frames{skip: prefaceSize}} }

// read takes note of bytes that have come from the client.
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

// written takes note of bytes that go to the client, and reports whether they end the last frame that it needs. A frame
// may come in several pieces: the HTTP/2 server's own buffer cuts them anywhere.
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

// begin is about headers of a client; those that follow a body belong to a stream that is open.
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

// leave is about GOAWAY: streams after last are not answered.
func (f *farewell) leave(last uint32) (complete bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = true
	f.open = slices.DeleteFunc(f.open, func(stream uint32) bool { return stream > last })
	return len(f.open) == 0
}

// frames cuts a direction of a connection into its frames.
type frames struct {
	skip int // how many bytes come before the next frame
	head frameHead
	have int // how much of head is there
}

// frameHead is the header of a frame, with the first four bytes of what GOAWAY says.
type frameHead [goAwayHeadSize]byte

// next returns the header of the next frame that begins in p, nil if p does not hold all of it, and what follows in p.
// The header is valid until the next call.
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

// lastStream is what a GOAWAY frame says.
func (h *frameHead) lastStream() uint32 {
	return binary.BigEndian.Uint32(h[frameHeaderSize:]) &^ (1 << 31)
}
