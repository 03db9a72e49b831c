package aggregation_test

import (
	"io"
	"net/http"
	"sync"
	"testing"
)

// TestLists runs more concurrent lists of a server than can have their own connections: the others, and other requests,
// share one. After they are answered, the next list has its own connection again.
func TestLists(t *testing.T) {
	c := start(t)
	const alone, more = 16, 4
	came, answer := make(chan string, alone+more), make(chan struct{})
	var mu sync.Mutex
	waits := true
	b := serveBackend(t, func(w http.ResponseWriter, r *http.Request) {
		came <- r.Proto
		mu.Lock()
		wait := waits
		mu.Unlock()
		if wait && r.URL.Path == anyone {
			<-answer
		}
		_, _ = io.WriteString(w, "fine")
	})
	c.service()
	c.register(b, "")
	c.available()
	var clients sync.WaitGroup
	list := func() {
		clients.Go(func() {
			if code, body := c.do("GET", anyone, ""); code != http.StatusOK || body != "fine" {
				t.Errorf("%d %s", code, body)
			}
		})
	}
	for i := range alone + more {
		list()
		want := "HTTP/1.1"
		if i >= alone {
			want = "HTTP/2.0"
		}
		if got := <-came; got != want {
			t.Errorf("list %d is asked for with %s, not %s", i, got, want)
		}
	}
	c.must("GET", anyone+"/a", "")
	if got := <-came; got != "HTTP/2.0" {
		t.Errorf("an object is asked for with %s", got)
	}
	mu.Lock()
	waits = false
	mu.Unlock()
	close(answer)
	clients.Wait()
	for got := ""; got != "HTTP/1.1"; got = <-came { // clients have their responses before the server is done with them
		c.must("GET", anyone, "")
	}
}
