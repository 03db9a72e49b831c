package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

const (
	flowcontrol  = "/apis/flowcontrol.apiserver.k8s.io/v1/"
	schemasPath  = flowcontrol + "flowschemas"
	levelsPath   = flowcontrol + "prioritylevelconfigurations"
	dumps        = "/debug/api_priority_and_fairness/"
	schemaHeader = "X-Kubernetes-Pf-Flowschema-Uid"
	levelHeader  = "X-Kubernetes-Pf-Prioritylevel-Uid"
	configMaps   = "/api/v1/namespaces/default/configmaps"
)

// startFair starts a server of 200 seats, with or without priority and fairness, and returns the administrator and
// mona, who may do everything with config maps of the namespace "default".
func startFair(t *testing.T, on bool) (admin, mona viewer) {
	t.Helper()
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(tokens, []byte("mona,mona,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := testserver.Start(t, func(c *bowsprit.Config) {
		c.Authentication.TokenAuthFile = tokens
		c.Limits.PriorityAndFairness = new(on)
		// A request waits in a queue for a quarter of that. A minute was too short on a machine with a stalled disk.
		c.Limits.RequestTimeout = time.Hour
		if on {
			c.Limits.MaxRequestsInFlight, c.Limits.MaxMutatingRequestsInFlight = 100, 100
		}
	})
	config := server.RESTConfig()
	admin = viewer{T: t, http: client(t, config), url: server.URL()}
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = "mona"
	mona = viewer{T: t, http: client(t, config), url: server.URL()}
	admin.do("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
		`{"metadata":{"name":"mapper"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["*"]}]}`)
	admin.bind("default", "mapper")
	return admin, mona
}

// answer is the response to a request.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

// ask sends a request with a possibly slow body. It may be called in any goroutine. It calls begun when the server
// requests the body.
func (v viewer) ask(method, path string, body io.Reader, begun func()) (answer, error) {
	trace := &httptrace.ClientTrace{Got100Continue: begun}
	r, err := http.NewRequestWithContext(httptrace.WithClientTrace(v.Context(), trace), method, v.url+path, body)
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	if begun != nil {
		r.Header.Set("Expect", "100-continue")
	}
	got, err := v.http.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer got.Body.Close()
	raw, err := io.ReadAll(got.Body)
	return answer{got.StatusCode, got.Header, raw}, err
}

// get reads a page.
func (v viewer) get(path string) answer {
	v.Helper()
	a, err := v.ask("GET", path, http.NoBody, nil)
	if err != nil {
		v.Fatal(err)
	}
	return a
}

// uid returns the uid of an object in JSON.
func uid(t *testing.T, raw []byte) string {
	t.Helper()
	var obj struct{ Metadata struct{ UID string } }
	if err := json.Unmarshal(raw, &obj); err != nil || obj.Metadata.UID == "" {
		t.Fatalf("no uid (%v): %s", err, raw)
	}
	return obj.Metadata.UID
}

func (v viewer) names(path string) (out []string) {
	v.Helper()
	var p page
	if err := json.Unmarshal(v.do("GET", path, ""), &p); err != nil {
		v.Fatal(err)
	}
	for _, s := range p.Items {
		out = append(out, s.Metadata.Name)
	}
	slices.Sort(out)
	return out
}

// addLevel makes a level of one seat, which it neither lends nor exceeds, and a queue for one request. It returns its
// uid.
func (v viewer) addLevel(name string) string {
	v.Helper()
	return uid(v.T, v.do("POST", levelsPath, `{"metadata":{"name":%q},"spec":{"type":"Limited","limited":{`+
		`"nominalConcurrencyShares":1,"lendablePercent":0,"borrowingLimitPercent":0,"limitResponse":{"type":"Queue",`+
		`"queuing":{"queues":1,"handSize":1,"queueLengthLimit":1}}}}}`, name))
}

// addSchema assigns mona's requests for config maps to a priority level. It returns the schema's uid.
func (v viewer) addSchema(name, level string) string {
	v.Helper()
	return uid(v.T, v.do("POST", schemasPath, `{"metadata":{"name":%q},"spec":{"matchingPrecedence":100,`+
		`"priorityLevelConfiguration":{"name":%q},"rules":[{"subjects":[{"kind":"User","user":{"name":"mona"}}],`+
		`"resourceRules":[{"verbs":["*"],"apiGroups":[""],"resources":["configmaps"],"namespaces":["*"]}]}]}}`,
		name, level))
}

// TestNoFairness checks a server without priority and fairness.
func TestNoFairness(t *testing.T) {
	t.Parallel()
	admin, mona := startFair(t, false)
	if has := append(admin.names(schemasPath), admin.names(levelsPath)...); len(has) > 0 {
		t.Errorf("objects %v", has)
	}
	for _, page := range []string{"dump_priority_levels", "dump_queues", "dump_requests"} {
		if a := admin.get(dumps + page); a.code != http.StatusNotFound {
			t.Errorf("%s: %d", page, a.code)
		}
	}
	admin.addLevel("one")
	admin.addSchema("mona", "one")
	a := mona.get(configMaps)
	if a.code != http.StatusOK || a.header[schemaHeader] != nil || a.header[levelHeader] != nil {
		t.Errorf("%d, headers %v", a.code, a.header)
	}
	if metrics := admin.do("GET", "/metrics", ""); bytes.Contains(metrics, []byte("apiserver_flowcontrol_")) {
		t.Error("there are metrics of flow control")
	}
}

// TestFairnessObjects checks the initial objects of a server, and the permissions for the debug pages.
func TestFairnessObjects(t *testing.T) {
	t.Parallel()
	admin, mona := startFair(t, true)
	want := []string{"catch-all", "exempt", "global-default", "leader-election", "node-high", "system", "workload-high",
		"workload-low"}
	if has := admin.names(levelsPath); !slices.Equal(has, want) {
		t.Errorf("levels %v", has)
	}
	want = []string{"catch-all", "exempt", "global-default", "kube-controller-manager", "kube-scheduler",
		"kube-system-service-accounts", "probes", "service-accounts", "system-leader-election", "system-node-high",
		"system-nodes"}
	if has := admin.names(schemasPath); !slices.Equal(has, want) {
		t.Errorf("schemas %v", has)
	}
	for _, one := range []struct {
		viewer
		schema, level, path string
		code                int
	}{
		{admin, "exempt", "exempt", configMaps, http.StatusOK},
		{mona, "global-default", "global-default", configMaps, http.StatusOK},
		{mona, "global-default", "global-default", "/api/v1/secrets", http.StatusForbidden},
	} {
		a := one.get(one.path)
		schema := uid(t, admin.do("GET", schemasPath+"/"+one.schema, ""))
		level := uid(t, admin.do("GET", levelsPath+"/"+one.level, ""))
		if a.code != one.code || a.header.Get(schemaHeader) != schema || a.header.Get(levelHeader) != level {
			t.Errorf("%s: %d, headers %v, want %s of %s, %s of %s", one.path, a.code, a.header, schema, one.schema, level,
				one.level)
		}
	}
	for _, page := range []string{"dump_priority_levels", "dump_queues", "dump_requests"} {
		if a := admin.get(dumps + page); a.code != http.StatusOK ||
			!bytes.HasPrefix(a.body, []byte("PriorityLevelName,")) {
			t.Errorf("%s: %d %s", page, a.code, a.body)
		}
		if a := mona.get(dumps + page); a.code != http.StatusForbidden {
			t.Errorf("%s for mona: %d", page, a.code)
		}
	}
	// The schema's status reports, some time after its creation, whether its level exists.
	admin.addSchema("dangling", "missing")
	for path, status := range map[string]string{"/exempt": "False", "/dangling": "True"} {
		for {
			raw := admin.do("GET", schemasPath+path, "")
			if bytes.Contains(raw, []byte(`"type":"Dangling"`)) {
				if !bytes.Contains(raw, []byte(fmt.Sprintf(`"status":%q`, status))) {
					t.Errorf("%s: %s", path, raw)
				}
				break
			}
		}
	}
}

// TestFairnessInForce changes the configuration. Each request uses the configuration written before it.
func TestFairnessInForce(t *testing.T) {
	t.Parallel()
	admin, mona := startFair(t, true)
	for i := range 20 {
		name := fmt.Sprintf("l%d", i)
		level := admin.addLevel(name)
		schema := admin.addSchema("mona", name)
		if h := mona.get(configMaps).header; h.Get(schemaHeader) != schema || h.Get(levelHeader) != level {
			t.Fatalf("turn %d: headers %v, want %s and %s", i, h, schema, level)
		}
		admin.do("DELETE", schemasPath+"/mona", "")
		if h := mona.get(configMaps).header; h.Get(schemaHeader) == schema {
			t.Fatalf("turn %d: a schema that is gone is in force", i)
		}
		admin.do("DELETE", levelsPath+"/"+name, "")
	}
}

// TestFairnessFull fills a level of one seat and one place in its queue: a write that waits for its body has the seat,
// a read waits, and another is sent away. Other users are served.
func TestFairnessFull(t *testing.T) {
	t.Parallel()
	admin, mona := startFair(t, true)
	admin.addLevel("one")
	schema := admin.addSchema("mona", "one")

	// A watch needs no seat after it has sent the initial objects.
	r, err := http.NewRequestWithContext(t.Context(), "GET",
		mona.url+configMaps+"?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&"+
			"resourceVersionMatch=NotOlderThan", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	watch, err := mona.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()
	events := json.NewDecoder(watch.Body)
	for mona.next(events).Type != "BOOKMARK" {
	}

	body, end := io.Pipe()
	begun, first := make(chan struct{}), make(chan error, 1)
	go func() {
		a, err := mona.ask("POST", configMaps, body, func() { close(begun) })
		if err == nil && a.code != http.StatusCreated {
			err = fmt.Errorf("%d %s", a.code, a.body)
		}
		first <- err
	}()
	select {
	case <-begun:
	case err := <-first:
		t.Fatalf("the write that should wait for its body: %v", err)
	}
	second := make(chan error, 1)
	go func() {
		a, err := mona.ask("GET", configMaps, http.NoBody, nil)
		if err == nil && a.code != http.StatusOK {
			err = fmt.Errorf("%d %s", a.code, a.body)
		}
		second <- err
	}()
	for waits := false; !waits; {
		select {
		case err := <-second:
			t.Fatalf("the read did not wait: %v", err)
		default:
		}
		for line := range strings.Lines(string(admin.get(dumps + "dump_requests").body)) {
			waits = waits || strings.HasPrefix(line, "one,") && strings.Contains(line, "mona")
		}
	}
	a := mona.get(configMaps)
	var status struct {
		Reason  string
		Details struct{ RetryAfterSeconds int }
	}
	if err := json.Unmarshal(a.body, &status); err != nil || a.code != http.StatusTooManyRequests ||
		a.header.Get("Retry-After") != "1" || status.Reason != "TooManyRequests" ||
		status.Details.RetryAfterSeconds != 1 || a.header.Get(schemaHeader) != schema {
		t.Errorf("a full queue: %v, %d %v %s", err, a.code, a.header, a.body)
	}
	if a := admin.get(configMaps); a.code != http.StatusOK {
		t.Errorf("the administrator: %d", a.code)
	}
	if _, err := io.WriteString(end, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`); err != nil {
		t.Error(err)
	}
	end.Close()
	for name, done := range map[string]chan error{"write": first, "read": second} {
		if err := <-done; err != nil {
			t.Errorf("the %s: %v", name, err)
		}
	}
	mona.expect(events, "ADDED", "default/a", "")
}
