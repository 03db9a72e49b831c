package aggregation_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/testing/script"
	"github.com/bowsprit/bowsprit/testserver"
)

// TestDeadServers runs each script of testdata/dead with a server and a clock of its own. Their commands:
//
//	CLOCK 30s                   advances the clock
//	SERVER a [of b]             starts an extension server, with the data of another one; its "port" and "ca" follow
//	MODE a up|down|hang|broken|refusing
//	DEAD 10                     registers extension servers, and lets them die
//	NAMESPACES 50 create|delete|gone
func TestDeadServers(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/dead/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		d := &dead{clock: testserver.NewClock(), servers: map[string]*flunderServer{}}
		server := testserver.Start(t, testserver.WithClock(d.clock), func(c *bowsprit.Config) {
			c.Controllers.Enabled = []string{"*", "-garbage-collector-controller"}
			if strings.Contains(file, "waiting") {
				c.Aggregation.NamespaceGrace = -1
			}
		})
		d.cluster = clientOf(t, server.RESTConfig())
		script.RunWith(t, file, d.config, script.Commands{
			"CLOCK": d.advance, "SERVER": d.serve, "MODE": d.mode, "DEAD": d.registerDead, "NAMESPACES": d.namespaces,
		})
	}
}

// dead is the state of a script.
type dead struct {
	*cluster
	clock   *testserver.Clock
	servers map[string]*flunderServer
}

func (d *dead) advance(t *testing.T, line, _ string) string {
	by, err := time.ParseDuration(line)
	if err != nil {
		t.Fatal(err)
	}
	d.clock.Advance(by)
	return ""
}

func (d *dead) serve(t *testing.T, line, _ string) string {
	name, of, _ := strings.Cut(line, " of ")
	s := &flunderServer{mode: "up", data: map[string]json.RawMessage{}}
	if of != "" {
		s.data = d.servers[of].data
	}
	s.backend = serveBackend(d.T, s.answer)
	d.servers[name] = s
	s.discovery("up")
	return fmt.Sprintf(`{"port":"%d","ca":%q}`, s.backend.port, base64.StdEncoding.EncodeToString(s.backend.ca))
}

func (d *dead) mode(t *testing.T, line, _ string) string {
	name, mode, _ := strings.Cut(line, " ")
	s := d.servers[name]
	if s == nil {
		t.Fatalf("no server %s", name)
	}
	s.mu.Lock()
	s.mode = mode
	s.mu.Unlock()
	s.discovery(mode)
	return ""
}

// registerDead registers dead servers, each in a group of its own. One server stands for all of them.
func (d *dead) registerDead(t *testing.T, line, _ string) string {
	d.serve(t, "dead", "")
	b := d.servers["dead"].backend
	n, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	b.set(func(b *backend) { b.group = "*" })
	for i := range n {
		name := fmt.Sprintf("dead%d.example.com", i)
		d.must("POST", "/apis/apiregistration.k8s.io/v1/apiservices", fmt.Sprintf(
			`{"metadata":{"name":"v1.%s"},"spec":{"group":%[1]q,"version":"v1","groupPriorityMinimum":2000,
			"versionPriority":10,"caBundle":%q,"service":{"namespace":"default","name":"api","port":%d}}}`,
			name, base64.StdEncoding.EncodeToString(b.ca), b.port))
		d.condition("v1."+name, func(status, _, _ string) bool { return status == "True" })
	}
	return d.mode(t, "dead down", "")
}

func (d *dead) namespaces(t *testing.T, line, _ string) string {
	number, action, _ := strings.Cut(line, " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		name := fmt.Sprintf("many-%d", i)
		switch action {
		case "create":
			d.must("POST", "/api/v1/namespaces", `{"metadata":{"name":"`+name+`"}}`)
		case "delete":
			d.must("DELETE", "/api/v1/namespaces/"+name, "")
		case "gone":
			d.until(name, "gone", func(kind, _ string) bool { return kind == "DELETED" })
		}
	}
	return ""
}

// flunderServer is an extension server with objects.
type flunderServer struct {
	backend *backend

	mu   sync.Mutex
	mode string
	data map[string]json.RawMessage // by "namespace/name"
}

// discovery sets the response to discovery.
func (s *flunderServer) discovery(mode string) {
	s.backend.set(func(b *backend) {
		b.down = mode == "down" || mode == "hang"
		if b.resources = flunders; mode == "down" || mode == "hang" {
			b.resources = ""
		}
	})
}

// answer answers the requests for objects.
func (s *flunderServer) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.mode == "down":
		panic(http.ErrAbortHandler)
	case s.mode == "hang":
		s.mu.Unlock()
		<-r.Context().Done()
		s.mu.Lock()
		return
	case s.mode == "broken":
		http.Error(w, "etcd is down", http.StatusInternalServerError)
		return
	case s.mode == "refusing" && r.Method == http.MethodDelete:
		http.Error(w, "protected", http.StatusForbidden)
		return
	}
	namespace, name := "", ""
	if _, rest, ok := strings.Cut(r.URL.Path, "/namespaces/"); ok {
		parts := append(strings.Split(rest, "/"), "")
		namespace, name = parts[0], parts[2]
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPost:
		body, _ := io.ReadAll(r.Body)
		var obj struct{ Metadata struct{ Name string } }
		_ = json.Unmarshal(body, &obj)
		s.data[namespace+"/"+obj.Metadata.Name] = body
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	case r.Method == http.MethodDelete:
		s.remove(namespace, name)
		_, _ = io.WriteString(w, `{}`)
	case name != "" && r.Method == http.MethodPatch: // removes the finalizers
		delete(s.data, namespace+"/"+name)
		_, _ = io.WriteString(w, `{}`)
	case name != "" && s.data[namespace+"/"+name] == nil:
		http.Error(w, `{"kind":"Status","code":404}`, http.StatusNotFound)
	case name != "":
		_, _ = w.Write(s.data[namespace+"/"+name])
	default:
		s.list(w, namespace)
	}
}

// remove deletes the objects of a namespace, or one of them, if they have no finalizers.
func (s *flunderServer) remove(namespace, name string) {
	for key, obj := range s.data {
		if (key == namespace+"/"+name || name == "" && strings.HasPrefix(key, namespace+"/")) &&
			!strings.Contains(string(obj), "finalizers") {
			delete(s.data, key)
		}
	}
}

func (s *flunderServer) list(w io.Writer, namespace string) {
	items := []json.RawMessage{}
	var keys []string
	for key := range s.data {
		if namespace == "" || strings.HasPrefix(key, namespace+"/") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		items = append(items, s.data[key])
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "FlunderList", "items": items})
}

// TestLeftoversAfterRestart restarts a server with a debt: the requests are still refused, and the debt is paid when
// the other server returns.
func TestLeftoversAfterRestart(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), testserver.NewClock()
	start := func() (*testserver.Server, *dead) {
		server := testserver.Start(t, testserver.WithClock(clock), func(c *bowsprit.Config) {
			c.Ephemeral, c.DataDir = false, dir
		})
		return server, &dead{cluster: clientOf(t, server.RESTConfig()), servers: map[string]*flunderServer{}}
	}
	server, d := start()
	d.serve(t, "a", "")
	other := d.servers["a"]
	d.service()
	d.register(other.backend, "")
	d.available()
	d.must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
	const flunders = "/apis/" + group + "/v1/namespaces/shop/flunders"
	d.must("POST", flunders, `{"metadata":{"name":"old"}}`)
	d.mode(t, "a down", "")
	d.must("DELETE", "/api/v1/namespaces/shop", "")
	clock.Advance(time.Hour)
	gone := func(kind, _ string) bool { return kind == "DELETED" }
	d.until("shop", "gone", gone)
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	_, again := start()
	if code, body := again.do("GET", flunders, ""); code != http.StatusConflict {
		t.Errorf("after a restart: %d %s", code, body)
	}
	d.mode(t, "a up", "")
	again.back("/apis/" + group + "/v1")
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(time.Minute); ; {
		code, body := again.do("GET", flunders, "")
		if code == http.StatusOK && strings.Contains(body, `"items":[]`) {
			break
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("the debt is not paid: %d %s", code, body)
		}
	}
}
