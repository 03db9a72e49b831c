package chain

import (
	"io"
	"net/http"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/testing/servetest"
)

// TestDate checks that each response has the current date; a response from another server keeps its own.
func TestDate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 23, 59, 58, 0, time.FixedZone("there", 3600))
	c := newChain(t, func(w http.ResponseWriter, _ *http.Request, info *request.Info, _ user.Info) {
		if info.Name == "relayed" {
			w.Header().Set("Date", "Thu, 01 Jan 1970 00:00:00 GMT")
		}
		_, _ = io.WriteString(w, "ok")
	}, func(c *Config) {
		c.Now = func() time.Time { return now }
		c.RequestTimeout = 1e6 * time.Hour
	})
	for _, tc := range []struct {
		after      time.Duration
		name, want string
	}{
		{0, "x", "Fri, 27 Nov 2026 22:59:58 GMT"},
		{999 * time.Millisecond, "x", "Fri, 27 Nov 2026 22:59:58 GMT"},
		{time.Millisecond, "x", "Fri, 27 Nov 2026 22:59:59 GMT"},
		{0, "relayed", "Thu, 01 Jan 1970 00:00:00 GMT"},
		{time.Second, "x", "Fri, 27 Nov 2026 23:00:00 GMT"},
		{-time.Minute, "x", "Fri, 27 Nov 2026 22:59:00 GMT"},
	} {
		now = now.Add(tc.after)
		if got := servetest.Do(c, "GET", "/api/v1/namespaces/a/pods/"+tc.name).Header()["Date"]; len(got) != 1 ||
			got[0] != tc.want {
			t.Errorf("at %s: Date %q, want %q", now, got, tc.want)
		}
	}
}
