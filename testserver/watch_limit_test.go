package testserver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/testserver"
)

// BenchmarkWatch sends an update of an object of 5 KB to 200 watches on one connection, and waits until all have read
// it, from this server and from a bare handler that writes the same bytes to its streams: the limit of a server on
// net/http. cpu-us/event is client and server together; the clients only search for line ends.
func BenchmarkWatch(b *testing.B) {
	s := testserver.Start(b)
	client, err := rest.HTTPClientFor(s.RESTConfig())
	if err != nil {
		b.Fatal(err)
	}
	fill(b, client, s.URL(), 1)
	n := 0 // each update must change a field
	update := func() error {
		n++
		return send(client, http.MethodPatch, s.URL()+widgetsPath+"/w-000000", "application/merge-patch+json",
			fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, n))
	}
	var frame []byte
	b.Run("bowsprit", func(b *testing.B) {
		// the object itself comes first
		frame = measureEvents(b, client, s.URL()+widgetsPath+"?watch=1&resourceVersion=0", 1, update)
	})
	b.Run("bare", func(b *testing.B) {
		if frame == nil {
			b.Skip("needs a frame from the other half")
		}
		streams := make(chan chan struct{}, watchers)
		url, client := bareHandler(b, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				for range watchers {
					stream := <-streams
					stream <- struct{}{}
					streams <- stream
				}
				return
			}
			control := http.NewResponseController(w)
			if control.Flush() != nil {
				return
			}
			turn := make(chan struct{}, 1)
			streams <- turn
			for {
				select {
				case <-turn:
				case <-r.Context().Done():
					return
				}
				if _, err := w.Write(frame); err != nil || control.Flush() != nil {
					return
				}
			}
		})
		measureEvents(b, client, url, 0, func() error { return send(client, http.MethodPost, url, "", "") })
	})
}

const watchers = 200

// measureEvents opens watches at url, reads the initial events, first of them, and measures b.N updates. It returns the
// last event.
func measureEvents(b *testing.B, client *http.Client, url string, first int, update func() error) (frame []byte) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var pending sync.WaitGroup // of an update, by every watcher
	read := func(from *bufio.Reader) ([]byte, error) {
		var line []byte
		for {
			part, err := from.ReadSlice('\n')
			line = append(line[:len(line):len(line)], part...)
			if err != bufio.ErrBufferFull {
				return line, err
			}
		}
	}
	for i := range watchers {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			b.Fatal(err)
		}
		resp, err := client.Do(request)
		if err != nil {
			b.Fatal(err)
		}
		from := bufio.NewReaderSize(resp.Body, 16<<10)
		for range first {
			if _, err := read(from); err != nil {
				b.Fatal(err)
			}
		}
		running.Go(func() {
			defer resp.Body.Close()
			for {
				line, err := read(from)
				if err != nil {
					return
				}
				if i == 0 {
					frame = line
				}
				pending.Done()
			}
		})
	}
	before := cpu()
	b.ResetTimer()
	for range b.N {
		pending.Add(watchers)
		if err := update(); err != nil {
			b.Fatal(err)
		}
		pending.Wait()
	}
	b.StopTimer()
	b.ReportMetric(float64((cpu()-before).Nanoseconds())/1000/float64(b.N*watchers), "cpu-us/event")
	b.ReportMetric(float64(b.N*watchers)/b.Elapsed().Seconds(), "events/s")
	return frame
}

func send(client *http.Client, method, url, contentType, body string) error {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", contentType)
	resp, err := client.Do(request)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if answer, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, answer)
	}
	return nil
}
