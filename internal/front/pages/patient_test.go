package pages

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestPatient checks that a client that stops reading does not hold its response for ever.
func TestPatient(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		ended := make(chan error, 1)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			// Flushing starts the response, however late the first chunk is.
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			chunk := make([]byte, 1<<20)
			for {
				if _, err := (Patient{w, 50 * time.Millisecond}).Write(chunk); err != nil {
					ended <- err
					return
				}
			}
		}))
		server.EnableHTTP2 = http2
		server.StartTLS()
		resp, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil {
			t.Error("no error")
		}
		_ = resp.Body.Close()
		server.Close()
	}
}
