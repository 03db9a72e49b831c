package cost

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// probeEnv holds a probe in JSON; a test binary that finds it is the neighbour's process.
const probeEnv = "ATTACK_PROBE"

// pace is the time between two requests of the neighbour.
const pace = 10 * time.Millisecond

// probe is the neighbour's configuration.
type probe struct {
	Host  string
	CA    []byte
	Token string
}

func TestMain(m *testing.M) {
	if text := os.Getenv(probeEnv); text != "" {
		runProbe(text)
		return
	}
	os.Exit(m.Run())
}

// runProbe sends a get every 10 ms, without waiting for earlier responses, and prints the latency of each in
// microseconds, or -1 for a failure. It ends with its standard input.
func runProbe(text string) {
	var p probe
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		panic(err)
	}
	client, err := rest.HTTPClientFor(&rest.Config{
		Host: p.Host, BearerToken: p.Token, TLSClientConfig: rest.TLSClientConfig{CAData: p.CA},
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		cancel()
	}()
	var mu sync.Mutex
	var pending sync.WaitGroup
	tick := time.NewTicker(pace)
	for ctx.Err() == nil {
		<-tick.C
		began := time.Now()
		pending.Go(func() {
			took := int64(-1)
			if get(client, p.Host+"/api/v1/namespaces/default") {
				took = time.Since(began).Microseconds()
			}
			mu.Lock()
			defer mu.Unlock()
			fmt.Println(began.UnixMicro(), took)
		})
	}
	pending.Wait()
}

func get(client *http.Client, url string) bool {
	answer, err := client.Get(url)
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// sample is one request of the neighbour.
type sample struct {
	began time.Time
	took  time.Duration // less than zero if it failed
}

// neighbourhood is the neighbour's process.
type neighbourhood struct {
	priority string
	stop     func()

	mu      sync.Mutex
	samples []sample
}

// watch starts the neighbour, at a raised priority where this process may raise it.
func watch(t *testing.T, server *process) *neighbourhood {
	t.Helper()
	text, err := json.Marshal(probe{Host: server.config.Host, CA: server.config.CAData, Token: neighbour})
	if err != nil {
		t.Fatal(err)
	}
	n := &neighbourhood{priority: "-10"}
	cmd := exec.Command("nice", "-n", n.priority, os.Args[0])
	if exec.Command("nice", "-n", n.priority, "true").Run() != nil {
		n.priority, cmd = "0 (it may not be raised here)", exec.Command(os.Args[0])
	}
	cmd.Env = append(os.Environ(), probeEnv+"="+string(text))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		n.read(bufio.NewScanner(out))
	}()
	n.stop = sync.OnceFunc(func() {
		in.Close()
		<-read
		if err := cmd.Wait(); err != nil {
			t.Errorf("the neighbour's process: %v", err)
		}
	})
	t.Cleanup(n.stop)
	return n
}

func (n *neighbourhood) read(lines *bufio.Scanner) {
	for lines.Scan() {
		var began, took int64
		if _, err := fmt.Sscan(lines.Text(), &began, &took); err != nil {
			continue
		}
		s := sample{time.UnixMicro(began), time.Duration(took) * time.Microsecond}
		n.mu.Lock()
		n.samples = append(n.samples, s)
		n.mu.Unlock()
	}
}

// between returns the number of requests that began within two times, the number of failures, and the 99th percentile
// of the others.
func (n *neighbourhood) between(from, to time.Time) (number, failed int, p99 time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var took []time.Duration
	for _, s := range n.samples {
		switch {
		case s.began.Before(from) || !s.began.Before(to):
		case s.took < 0:
			failed++
		default:
			took = append(took, s.took)
		}
	}
	if len(took) == 0 {
		return failed, failed, 0
	}
	slices.Sort(took)
	return failed + len(took), failed, took[min(len(took)*99/100, len(took)-1)]
}
