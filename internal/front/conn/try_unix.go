//go:build unix

package conn

import (
	"errors"
	"net"
	"syscall"
)

// tryWriter writes to a connection as far as that is possible without waiting for the client.
type tryWriter struct {
	raw syscall.RawConn // nil if the connection has no file descriptor (tests)
	// The arguments and results of once. raw.Write takes a function; one value of it saves an allocation for each
	// write.
	p    []byte
	n    int
	err  error
	once func(fd uintptr) bool
}

func (w *tryWriter) begin(c net.Conn) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return
	}
	w.raw = raw
	w.once = func(fd uintptr) bool {
		for {
			if w.n, w.err = syscall.Write(int(fd), w.p); !errors.Is(w.err, syscall.EINTR) {
				return true // also for EAGAIN, so that raw.Write does not wait
			}
		}
	}
}

// write returns the number of bytes that the socket has taken, which may be 0.
func (w *tryWriter) write(p []byte) (int, error) {
	if w.raw == nil {
		return 0, nil
	}
	w.p = p
	err := w.raw.Write(w.once)
	w.p = nil
	switch {
	case err != nil:
		return 0, err
	case errors.Is(w.err, syscall.EAGAIN):
		return 0, nil
	}
	return max(w.n, 0), w.err
}
