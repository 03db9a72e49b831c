package pages

import (
	"net/http"
	"time"
)

// Patient writes a long response to a client that must keep reading: a write that takes longer than Patience fails. The
// whole response, which may be as large as the disk, has no limit.
type Patient struct {
	To       http.ResponseWriter
	Patience time.Duration
}

// Write implements io.Writer.
func (p Patient) Write(b []byte) (int, error) {
	control := http.NewResponseController(p.To)
	// An error means that the connection has no deadlines.
	_ = control.SetWriteDeadline(time.Now().Add(p.Patience))
	n, err := p.To.Write(b)
	_ = control.SetWriteDeadline(time.Time{}) // an HTTP/1.1 connection may serve another request
	return n, err
}
