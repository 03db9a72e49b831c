// Command greedy is one user with many connections. It requests large lists from an API server and sends it large
// writes, each as soon as the one before is answered. After a 429 it waits for the time in Retry-After, as client-go
// does, unless it is rude. At its end, by a signal, it prints its results in one line.
//
// It is a program of its own so that it can run at the lowest priority of the machine: the measurement should show how
// a server handles its load, without the CPU time of the clients.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

var (
	server      = flag.String("server", "", "URL of the server")
	token       = flag.String("token", "", "bearer token")
	path        = flag.String("path", "", "path of the collection of config maps that it lists; it writes to c0, c1, ...")
	connections = flag.Int("connections", 500, "connections, each with one request at a time")
	writes      = flag.Int("writes", 20, "percent of the requests that are writes")
	size        = flag.Int("size", 20_000, "bytes of a write")
	rude        = flag.Bool("rude", false, "come back at once, whatever the server asks for")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	got := counts{codes: map[string]int{}}
	var all sync.WaitGroup
	for i := range *connections {
		all.Go(func() { work(ctx, i, &got) })
	}
	all.Wait()
	fmt.Println(&got)
}

// counts are the numbers of responses.
type counts struct {
	mu    sync.Mutex
	codes map[string]int // by method and code
	bytes int64
}

func (c *counts) add(outcome string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.codes[outcome]++
	c.bytes += n
}

// String is "GET 200: 7, PUT 429: 3, 12 MB".
func (c *counts) String() string {
	var b strings.Builder
	for _, outcome := range slices.Sorted(maps.Keys(c.codes)) {
		fmt.Fprintf(&b, "%s: %d, ", outcome, c.codes[outcome])
	}
	return b.String() + strconv.FormatInt(c.bytes>>20, 10) + " MB"
}

// work sends requests over one connection until ctx ends.
func work(ctx context.Context, i int, got *counts) {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // its server's authority is of no interest here
		MaxConnsPerHost: 1, DisableCompression: true,           // HTTP/1: unread responses stay in sockets
	}
	client := &http.Client{Transport: transport}
	payload := []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%d"},"data":{"a":%q}}`, i,
		strings.Repeat("y", *size)))
	for ctx.Err() == nil {
		method, url, body := http.MethodGet, *server+*path, []byte(nil)
		if rand.IntN(100) < *writes {
			method, url, body = http.MethodPut, url+"/c"+strconv.Itoa(i), payload
		}
		again := send(ctx, client, method, url, body, got)
		if again > 0 && !*rude {
			select {
			case <-time.After(again):
			case <-ctx.Done():
			}
		}
	}
}

// send sends one request, and returns the server's Retry-After.
func send(ctx context.Context, client *http.Client, method, url string, body []byte, got *counts) time.Duration {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		panic(err) // of the URL that was given
	}
	r.Header.Set("Authorization", "Bearer "+*token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		if ctx.Err() == nil {
			got.add(method+" failed", 0)
		}
		return time.Second
	}
	defer answer.Body.Close()
	n, err := io.Copy(io.Discard, answer.Body)
	if ctx.Err() != nil {
		return 0
	}
	outcome := method + " " + strconv.Itoa(answer.StatusCode)
	if err != nil {
		outcome = method + " cut off"
	}
	got.add(outcome, n)
	seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
	return time.Duration(seconds) * time.Second
}
