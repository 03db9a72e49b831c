package chain

import (
	"net/http"
	"sync/atomic"
	"time"
)

// dates formats the Date header (RFC 9110, section 6.6.1) once a second. The HTTP/2 server would format it for each
// response.
type dates struct{ last atomic.Pointer[date] }

// date is the header of one second; it is shared by responses and never changed.
type date struct {
	unix   int64
	header []string
}

// at returns the header for a time.
func (d *dates) at(now time.Time) []string {
	second := now.Unix()
	last := d.last.Load()
	if last == nil || last.unix != second {
		last = &date{second, []string{now.UTC().Format(http.TimeFormat)}}
		d.last.Store(last)
	}
	return last.header
}
