package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

const (
	costGroup = "/apis/cost.example.com/v1"
	costList  = costGroup + "/namespaces/default/things"
	costItems = 500
)

// TestAggregationCost measures the CPU time of a process that forwards requests to another server: Bowsprit, a real
// kube-apiserver (E2E_KUBE_APISERVER), a program with only a httputil.ReverseProxy, and a program that only decrypts
// and encrypts again, which is the lower limit of a proxy. They run in turns. Requests are gets of 5 KB and lists of
// 500 such objects, by clients of HTTP/2, such as client-go, and HTTP/1. E2E_AGGREGATION_COST is the number of turns;
// without it the test is skipped, because it is a benchmark.
func TestAggregationCost(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv("E2E_AGGREGATION_COST"))
	if err != nil {
		t.Skip("E2E_AGGREGATION_COST is not set to a number of turns")
	}
	backend := startThings(t)
	ours := behindFront(t, "bowsprit", startServer(t, "--ephemeral"), backend)
	proxies := []*costly{newAlone(t, "TLS", backend), newAlone(t, "ReverseProxy", backend), ours}
	if reference != "" {
		proxies = append(proxies, behindFront(t, "kube-apiserver", startFront(t), backend))
	}
	for _, work := range []costWork{
		{"gets, HTTP/2", costList + "/a", 4000, false}, {"gets, HTTP/1", costList + "/a", 4000, true},
		{"lists, HTTP/2", costList, 150, false}, {"lists, HTTP/1", costList, 150, true},
	} {
		took := make([][]float64, len(proxies))
		for range rounds + 1 { // the first one warms up
			for i, p := range proxies {
				took[i] = append(took[i], p.run(t, work))
			}
		}
		for i, p := range proxies {
			all := took[i][1:]
			slices.Sort(all)
			t.Logf("%-14s %-14s %7.0f us of CPU each, %.0f to %.0f", work.name, p.name, all[len(all)/2], all[0], all[len(all)-1])
		}
	}
}

// costWork is requests of one kind.
type costWork struct {
	name, path string
	n          int
	alone      bool // over HTTP/1
}

// startThings starts the server that all requests end at, and returns its port.
func startThings(t *testing.T) string {
	t.Helper()
	thing := func(name string) string {
		return `{"apiVersion":"cost.example.com/v1","kind":"Thing","metadata":{"name":"` + name +
			`","namespace":"default"},"spec":{"text":"` + strings.Repeat("some text, ", 450) + `"}}`
	}
	items := make([]string, costItems)
	for i := range items {
		items[i] = thing(fmt.Sprintf("thing-%d", i))
	}
	answers := map[string]string{
		costGroup: `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"cost.example.com/v1","resources":[
			{"name":"things","singularName":"thing","namespaced":true,"kind":"Thing","verbs":["get","list"]}]}`,
		costList + "/a": thing("a"),
		costList: `{"apiVersion":"cost.example.com/v1","kind":"ThingList","metadata":{"resourceVersion":"1"},"items":[` +
			strings.Join(items, ",") + `]}`,
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		_, _ = io.WriteString(w, answer)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// costly is a process that passes requests on.
type costly struct {
	name    string
	process *os.Process
	config  *rest.Config
}

// behindFront registers the server behind one in front.
func behindFront(t *testing.T, name string, front *process, port string) *costly {
	t.Helper()
	kubectl(t, front, []byte(`{apiVersion: v1, kind: Service, metadata: {name: things, namespace: default},
		spec: {type: ExternalName, externalName: localhost, ports: [{port: `+port+`}]}}
---
{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.cost.example.com}, spec: {
		group: cost.example.com, version: v1, groupPriorityMinimum: 1000, versionPriority: 1, insecureSkipTLSVerify: true,
		service: {name: things, namespace: default, port: `+port+`}}}`), "create", "-f", "-")
	kubectl(t, front, nil, "wait", "--for=condition=Available", "--timeout=60s", "apiservice/v1.cost.example.com")
	return &costly{name: name, process: front.cmd.Process, config: front.config(t)}
}

// run sends requests and returns the CPU time of the process for each, in microseconds.
func (p *costly) run(t *testing.T, work costWork) float64 {
	t.Helper()
	config := rest.CopyConfig(p.config)
	if work.alone {
		config.NextProtos = []string{"http/1.1"}
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	base := config.Host
	if !strings.Contains(base, "://") {
		base = "https://" + base
	}
	var left atomic.Int64
	left.Store(int64(work.n))
	before := cpuTime(t, p.process.Pid)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for left.Add(-1) >= 0 {
				res, err := client.Get(base + work.path)
				if err != nil {
					t.Error(err)
					return
				}
				n, err := io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if err != nil || res.StatusCode != http.StatusOK || n < 4096 {
					t.Errorf("%s: %s, %d bytes, %v", p.name, res.Status, n, err)
					return
				}
			}
		})
	}
	workers.Wait()
	return float64(cpuTime(t, p.process.Pid)-before) * 1e4 / float64(work.n)
}

// cpuTime returns the CPU time of a process, in hundredths of a second.
func cpuTime(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')'):])
	user, err := strconv.Atoi(string(fields[12]))
	if err != nil {
		t.Fatal(err)
	}
	system, err := strconv.Atoi(string(fields[13]))
	if err != nil {
		t.Fatal(err)
	}
	return user + system
}
