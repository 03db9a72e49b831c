package chain

import (
	"net/http"
	"sync/atomic"
	"time"
)

// dates formats the time of answers (RFC 9110, section 6.6.1) once for all of a second. The HTTP/2 server does it for
// each.
type dates struct{ last atomic.Pointer[date] }

// date is the header Date of a second; it is shared by answers and never changed.
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
