package rest

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/bowsprit/bowsprit/internal/request/reuse"
)

// giveUpAfter limits how long a finished watch waits for a client that does not read.
const giveUpAfter = 5 * time.Second

// frames writes the frames of a watch. It combines frames that arrive together, because each write to an HTTP/2 stream
// synchronizes with the connection's goroutine, which costs more than copying a frame.
type frames struct {
	out     http.ResponseWriter
	control *http.ResponseController

	one  []byte  // a single frame so far: it is written without a copy
	many *[]byte // gathered frames, nil if there are none
}

// chunks holds buffers for parts of a response. A buffer returns to the pool only if all its writes succeeded: when a
// stream is reset, net/http's Write returns while the connection's goroutine may still read the bytes.
var chunks = reuse.Bytes(streamChunk + 8<<10)

func (f *frames) put(frame []byte) bool {
	switch {
	case f.one == nil && f.many == nil, len(frame) >= streamChunk: // large frames are not copied
		if !f.write() {
			return false
		}
		f.one = frame
		return true
	case !f.gather(len(frame)):
		return false
	}
	*f.many = append(*f.many, frame...)
	return len(*f.many) < streamChunk || f.write()
}

func (f *frames) putParts(head, body, tail []byte) bool {
	large := len(body) >= streamChunk
	size := len(head) + len(tail)
	if !large {
		size += len(body)
	}
	if !f.gather(size) {
		return false
	}
	*f.many = append(*f.many, head...)
	if large {
		if !f.write() {
			return false
		}
		if _, err := f.out.Write(body); err != nil {
			return false
		}
		body = nil
		f.gather(len(tail))
	}
	*f.many = append(append(*f.many, body...), tail...)
	return len(*f.many) < streamChunk || f.write()
}

// gather makes room in many for size more bytes, less than streamChunk. It returns false if the client has
// disconnected.
func (f *frames) gather(size int) bool {
	if len(f.one)+size > streamChunk || f.many != nil && len(*f.many)+size > cap(*f.many) {
		if !f.write() {
			return false
		}
	}
	if f.many == nil {
		f.many = chunks.Get()
		*f.many = append((*f.many)[:0], f.one...)
		f.one = nil
	}
	return true
}

func (f *frames) push() bool { return f.write() && f.control.Flush() == nil }

func (f *frames) full() bool { return false }

func (f *frames) write() (ok bool) {
	var err error
	switch {
	case f.one != nil:
		_, err = f.out.Write(f.one)
		f.one = nil
	case f.many != nil:
		_, err = f.out.Write(*f.many)
		if err == nil && cap(*f.many) <= 2*streamChunk { // a very large frame has not grown it
			chunks.Put(f.many)
		}
		f.many = nil
	}
	return err == nil
}

// giveUp makes writes fail soon after ctx ends. Otherwise a client that does not read would keep a finished watch for
// as long as its connection lives. It returns a function that cancels this; call it before the handler returns.
func (f *frames) giveUp(ctx context.Context) (stop func()) {
	var mu sync.Mutex
	over := false
	forget := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			_ = f.control.SetWriteDeadline(time.Now().Add(giveUpAfter)) // on error there is no deadline to set
		}
	})
	return func() {
		if forget() {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		over = true
		_ = f.control.SetWriteDeadline(time.Time{}) // an HTTP/1.1 connection may serve another request
	}
}
