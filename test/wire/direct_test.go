package wire

import (
	"bufio"
	"runtime"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/testing/script"
	"github.com/bowsprit/bowsprit/testserver"
)

// TestDirectHTTP2 runs the scripts of watches on a server of HTTP/2 that carries watches without their handlers. It is
// not parallel: no other server of the process has handlers of watches.
func TestDirectHTTP2(t *testing.T) {
	s := testserver.Start(t, func(c *bowsprit.Config) { c.HTTP.HTTP2Server = config.HTTP2Direct })
	script.Run(t, "testdata/watch.txt", s.RESTConfig())
	t.Run("no handler", func(t *testing.T) {
		client, err := rest.HTTPClientFor(s.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			resp, err := client.Get(s.RESTConfig().Host + "/api/v1/namespaces?watch=1&allowWatchBookmarks=true")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			line, err := bufio.NewReader(resp.Body).ReadString('\n')
			if err != nil || !strings.Contains(line, `"ADDED"`) {
				t.Fatalf("the first event is %q, error %v", line, err)
			}
		}
		stacks := make([]byte, 4<<20)
		for { // handlers return soon after the first event; if they do not, the test times out
			n := runtime.Stack(stacks, true)
			if !strings.Contains(string(stacks[:n]), ".serveWatch(") {
				break
			}
			runtime.Gosched()
		}
	})
}
