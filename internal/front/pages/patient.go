package pages

import (
	"net/http"
	"time"
)

// Patient writes a long answer to a client that must go on reading: a write that takes longer than Patience fails.
// There is no bound for the whole, which may be as large as the disk.
type Patient struct {
	To       http.ResponseWriter
	Patience time.Duration
}

// Write implements io.Writer.
func (p Patient) Write(b []byte) (int, error) {
	control := http.NewResponseController(p.To)
	// An error says that the connection has no deadlines.
	_ = control.SetWriteDeadline(time.Now().Add(p.Patience))
	n, err := p.To.Write(b)
	_ = control.SetWriteDeadline(time.Time{}) // a connection of HTTP/1.1 may serve another request
	return n, err
}
