package conn

import "net/http"

// roomy runs a handler on a stack that is large enough, grown in one step. The goroutine of an HTTP/2 request begins
// with 2 KiB and needs several times that; each time the stack is full, the runtime doubles it and copies its frames.
// The copies took 6 % of a create. At this point there are two frames to copy: this one and the goroutine's first. The
// goroutines of HTTP/1 live as long as their connections, and so do their stacks.
type roomy struct{ next http.Handler }

func (h *roomy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method { // inline, since a function would add a frame
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		_ = room8(0)
	default:
		_ = room16(0)
	}
	h.next.ServeHTTP(w, r)
}

// room8 leaves a stack of 16 KiB, the largest size that the runtime caches. Reads rarely need more. Only the size of
// the frame matters; i is 0, so that the array is not cleared.
//
//go:noinline
func room8(i int) byte {
	if i == 0 {
		return 0
	}
	var room [8 << 10]byte
	return room[i&(len(room)-1)]
}

// room16 leaves a stack of 32 KiB. A write is 16 KiB deep where it enters etcd.
//
//go:noinline
func room16(i int) byte {
	if i == 0 {
		return 0
	}
	var room [16 << 10]byte
	return room[i&(len(room)-1)]
}
