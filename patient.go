package bowsprit

import (
	"net/http"
	"time"
)

// snapshotPatience is how long a client may take to read a piece of a snapshot.
const snapshotPatience = time.Minute

// patient writes a long answer to a client that must go on reading: a write that takes longer than patience fails.
// There is no bound for the whole, which may be as large as the disk.
type patient struct {
	to       http.ResponseWriter
	patience time.Duration
}

func (p patient) Write(b []byte) (int, error) {
	control := http.NewResponseController(p.to)
	// An error says that the connection has no deadlines.
	_ = control.SetWriteDeadline(time.Now().Add(p.patience))
	n, err := p.to.Write(b)
	_ = control.SetWriteDeadline(time.Time{}) // a connection of HTTP/1.1 may serve another request
	return n, err
}
