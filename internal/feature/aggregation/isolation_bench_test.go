package aggregation_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/testserver"
)

// BenchmarkIsolation measures the 99th percentile of gets of a ConfigMap while thirty-two clients each send a hundred
// requests a second for another server's resource: a server that is healthy, hangs, breaks connections off, or is
// available and unavailable in turns. The four alternate in rounds, so that other load of the machine affects all of
// them. p99-us is over all rounds; p99-ratio is relative to the healthy server.
func BenchmarkIsolation(b *testing.B) {
	const well, hangs, dies, flaps = 0, 1, 2, 3
	names := []string{well: "well", hangs: "hangs", dies: "dies", flaps: "flaps"}
	type round struct {
		state int
		over  chan struct{} // closed at the start of the next round
	}
	var current atomic.Pointer[round]
	var requests atomic.Int64
	begin := func(state int) {
		if last := current.Swap(&round{state, make(chan struct{})}); last != nil {
			close(last.over)
		}
	}
	begin(well)
	other := serveBench(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch now := current.Load(); {
		case now.state == hangs:
			select {
			case <-r.Context().Done():
			case <-now.over:
			}
		case now.state == dies, now.state == flaps && requests.Add(1)/50%2 == 1:
			panic(http.ErrAbortHandler)
		case r.URL.Path == "/apis/"+group+"/v1":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, flunders)
		default:
			_, _ = io.WriteString(w, "fine")
		}
	}))
	b.Cleanup(func() { begin(well) })
	_, port, _ := strings.Cut(strings.TrimPrefix(other.URL, "https://"), ":")
	server := testserver.Start(b)
	client, err := rest.HTTPClientFor(server.RESTConfig())
	if err != nil {
		b.Fatal(err)
	}
	host := server.RESTConfig().Host
	for path, body := range map[string]string{
		"/api/v1/namespaces/default/services": `{"metadata":{"name":"api"},"spec":{"type":"ExternalName",
			"externalName":"localhost"}}`,
		"/apis/apiregistration.k8s.io/v1/apiservices": fmt.Sprintf(`{"metadata":{"name":"v1.%s"},"spec":{"group":%[1]q,
			"version":"v1","groupPriorityMinimum":2000,"versionPriority":10,"insecureSkipTLSVerify":true,
			"service":{"namespace":"default","name":"api","port":%s}}}`, group, port),
		"/api/v1/namespaces/default/configmaps": `{"metadata":{"name":"a"},"data":{"a":"` +
			base64.StdEncoding.EncodeToString(make([]byte, 1<<10)) + `"}}`,
	} {
		resp, err := client.Post(host+path, "application/json", strings.NewReader(body))
		if err != nil || resp.StatusCode != http.StatusCreated {
			b.Fatal(resp, err)
		}
		resp.Body.Close()
	}
	ctx, end := context.WithCancel(b.Context())
	var clients sync.WaitGroup
	defer clients.Wait()
	defer end()
	for range 32 {
		clients.Go(func() {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				limited, cancel := context.WithTimeout(ctx, time.Second)
				get(limited, client, host+anyone+"/a") // the result does not matter
				cancel()
				<-tick.C
			}
		})
	}
	took := make([][]time.Duration, len(names))
	const settling, measured = 500, 1500 // gets of a round
	for b.Loop() {
		for now := range names {
			begin(now)
			for i := range settling + measured {
				start := time.Now()
				if code := get(ctx, client, host+"/api/v1/namespaces/default/configmaps/a"); code != http.StatusOK {
					b.Fatal(code)
				}
				if i >= settling {
					took[now] = append(took[now], time.Since(start))
				}
			}
		}
	}
	var base time.Duration
	for now, all := range took {
		slices.Sort(all)
		p99 := all[len(all)*99/100]
		if now == well {
			base = p99
		}
		b.ReportMetric(float64(p99.Microseconds()), names[now]+"-p99-us")
		b.ReportMetric(float64(p99)/float64(base), names[now]+"-p99-ratio")
	}
}

// get returns the status code of a response, 0 if there is none.
func get(ctx context.Context, client *http.Client, url string) int {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}
