package rest

import (
	"bytes"
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// stuck is an http.ResponseWriter whose client stops reading after some writes.
type stuck struct {
	bytes.Buffer
	writes, reads int
	deadline      atomic.Int64 // Unix, 0 for none
}

func (s *stuck) Header() http.Header { return http.Header{} }
func (s *stuck) WriteHeader(int)     {}
func (s *stuck) Flush()              {}

func (s *stuck) Write(p []byte) (int, error) {
	if s.writes++; s.writes <= s.reads {
		return s.Buffer.Write(p)
	}
	for s.deadline.Load() == 0 || time.Now().Unix() < s.deadline.Load() {
		time.Sleep(time.Second)
	}
	return 0, context.DeadlineExceeded
}

func (s *stuck) SetWriteDeadline(t time.Time) error {
	s.deadline.Store(0)
	if !t.IsZero() {
		s.deadline.Store(t.Unix())
	}
	return nil
}

func newFrames(w *stuck) *frames { return &frames{out: w, control: http.NewResponseController(w)} }

// TestFramesGoOutTogether counts writes.
func TestFramesGoOutTogether(t *testing.T) {
	t.Parallel()
	w := &stuck{reads: 100}
	f := newFrames(w)
	var want []byte
	put := func(frame []byte) {
		want = append(want, frame...)
		if !f.put(frame) {
			t.Fatal("the client has not gone")
		}
	}
	for _, step := range []struct{ frames, size, writes int }{{1, 10, 1}, {0, 0, 0}, {10, 1000, 1}, {200, 1000, 4},
		{1, 3 * streamChunk, 1}, {3, 3 * streamChunk, 3}} {
		w.writes = 0
		for range step.frames {
			put(bytes.Repeat([]byte{byte('a' + step.size%7)}, step.size))
		}
		if !f.push() || w.writes != step.writes {
			t.Errorf("%d frames of %d bytes took %d writes, want %d", step.frames, step.size, w.writes, step.writes)
		}
	}
	if !bytes.Equal(w.Bytes(), want) {
		t.Error("other bytes, or in another order")
	}
}

// TestStuckWatchEnds checks that an expired watch does not wait for a client that does not read.
func TestStuckWatchEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &stuck{reads: 1}
		f := newFrames(w)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		stop := f.giveUp(ctx)
		began := time.Now()
		for f.put([]byte("frame")) && f.push() {
		}
		if took := time.Since(began); took < time.Minute || took > time.Minute+2*giveUpAfter {
			t.Errorf("it took %v", took)
		}
		if stop(); w.deadline.Load() != 0 {
			t.Error("the connection keeps the deadline")
		}
		// A watch that ends in time sets no deadline.
		w = &stuck{reads: 1}
		f = newFrames(w)
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		f.giveUp(ctx)()
		cancel()
		synctest.Wait()
		if w.deadline.Load() != 0 {
			t.Error("a deadline after the end")
		}
	})
}
