package bowsprit

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// A client that does not read its snapshot does not hold it for ever.
func TestSnapshotPatience(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		ended := make(chan error, 1)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			chunk := make([]byte, 1<<20)
			for {
				if _, err := (patient{w, 50 * time.Millisecond}).Write(chunk); err != nil {
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
