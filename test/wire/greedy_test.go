package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

// crowd is a server and three of its users. greedy and modest may do everything with config maps. They share the
// priority level "shared", which has one seat and 64 queues for two requests each. Each user has one queue.
type crowd struct {
	admin, greedy, modest, nobody viewer
}

func startCrowd(t *testing.T) crowd {
	t.Helper()
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(tokens, []byte("greedy,greedy,1\nmodest,modest,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := testserver.Start(t, func(c *bowsprit.Config) {
		c.Authentication.TokenAuthFile = tokens
		c.Limits.MaxRequestsInFlight, c.Limits.MaxMutatingRequestsInFlight = 100, 100
		c.Limits.RequestTimeout = 10 * time.Minute // so that no request is late on a busy machine
	})
	as := func(token string) viewer {
		config := rest.AnonymousClientConfig(server.RESTConfig())
		config.BearerToken = token
		if token == "" { // an HTTP/2 connection would be the others' too, and end with the first answer
			config.NextProtos = []string{"http/1.1"}
		}
		return viewer{T: t, http: client(t, config), url: server.URL()}
	}
	admin := viewer{T: t, http: client(t, server.RESTConfig()), url: server.URL()}
	c := crowd{admin, as("greedy"), as("modest"), as("")}
	c.admin.do("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", `{"metadata":{"name":"crowd"},"roleRef":{`+
		`"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"edit"},"subjects":[`+
		`{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"greedy"},`+
		`{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"modest"}]}`)
	c.admin.do("POST", levelsPath, `{"metadata":{"name":"shared"},"spec":{"type":"Limited","limited":{`+
		`"nominalConcurrencyShares":1,"lendablePercent":0,"borrowingLimitPercent":0,"limitResponse":{"type":"Queue",`+
		`"queuing":{"queues":64,"handSize":1,"queueLengthLimit":2}}}}}`)
	c.admin.do("POST", schemasPath, `{"metadata":{"name":"crowd"},"spec":{"matchingPrecedence":100,`+
		`"distinguisherMethod":{"type":"ByUser"},"priorityLevelConfiguration":{"name":"shared"},"rules":[{"subjects":[`+
		`{"kind":"User","user":{"name":"greedy"}},{"kind":"User","user":{"name":"modest"}}],"resourceRules":[`+
		`{"verbs":["*"],"apiGroups":[""],"resources":["configmaps"],"namespaces":["*"]}]}]}}`)
	return c
}

// start sends a request and returns the channel of its response.
func (v viewer) start(method, path string, body io.Reader, begun func()) <-chan answer {
	out := make(chan answer, 1)
	go func() {
		a, err := v.ask(method, path, body, begun)
		if err != nil {
			v.Errorf("%s %s: %v", method, path, err)
		}
		out <- a
	}()
	return out
}

// rows returns the rows of a dump for the level "shared", cut to the given number of columns.
func (c crowd) rows(page string, columns int) (out [][]string) {
	c.admin.Helper()
	for line := range strings.Lines(string(c.admin.get(dumps + page).body)) {
		fields := strings.Split(strings.TrimSpace(line), ",")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		if fields[0] == "shared" {
			out = append(out, fields[:min(columns, len(fields))])
		}
	}
	return out
}

// waiting returns the queues with waiting requests of a user.
func (c crowd) waiting(user string) (queues []string) {
	c.admin.Helper()
	for _, row := range c.rows("dump_requests", 5) { // level, schema, queue, index, flow
		if row[4] == user && row[3] != "-1" {
			queues = append(queues, row[2])
		}
	}
	return queues
}

// await waits until so many requests of a user wait.
func (c crowd) await(user string, n int, answers ...<-chan answer) {
	c.admin.Helper()
	for len(c.waiting(user)) != n {
		for _, a := range answers {
			select {
			case got := <-a:
				c.admin.Fatalf("a request of %s was answered instead of waiting: %d %s", user, got.code, got.body)
			default:
			}
		}
	}
}

// TestGreedyUserWaits fills a level's seat and the greedy user's queue. Further requests of the greedy user are
// refused. Another user's request waits in a queue of its own, health checks and requests of other levels succeed, and
// all waiting requests are served in the end.
func TestGreedyUserWaits(t *testing.T) {
	t.Parallel()
	c := startCrowd(t)
	body, end := io.Pipe()
	begun := make(chan struct{})
	write := c.greedy.start("POST", configMaps, body, func() { close(begun) })
	<-begun
	first := c.greedy.start("GET", configMaps, http.NoBody, nil)
	c.await("greedy", 1, first)
	second := c.greedy.start("GET", configMaps, http.NoBody, nil)
	c.await("greedy", 2, first, second)
	if a := c.greedy.get(configMaps); a.code != http.StatusTooManyRequests || a.header.Get("Retry-After") != "1" {
		t.Errorf("the greedy user's fourth request: %d %v", a.code, a.header)
	}
	modest := c.modest.start("GET", configMaps, http.NoBody, nil)
	c.await("modest", 1, modest)
	if c.waiting("modest")[0] == c.waiting("greedy")[0] {
		t.Fatal("both users have one queue: choose other names")
	}
	// Two queues, neither idle nor quiescing; waiting, executing, dispatched, rejected.
	if got := c.rows("dump_priority_levels", 8); len(got) != 1 || strings.Join(got[0], " ") !=
		"shared 2 false false 3 1 1 1" {
		t.Errorf("the level is %v", got)
	}
	for _, page := range []string{"/healthz", "/livez", "/readyz"} {
		c.healthy(page)
	}
	if a := c.modest.get("/api/v1/namespaces/default/pods"); a.code != http.StatusOK {
		t.Errorf("a request of another level: %d", a.code)
	}
	if _, err := io.WriteString(end, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`); err != nil {
		t.Error(err)
	}
	end.Close()
	for name, a := range map[string]<-chan answer{"write": write, "first list": first, "second list": second,
		"other user's list": modest} {
		if got := <-a; got.code >= 300 {
			t.Errorf("the %s: %d %s", name, got.code, got.body)
		}
	}
	c.idle()
}

// idle waits until the level has all its seats back and no request waits. A seat returns when its request's handler
// ends, which is after the client has the response, and later still if the client left without reading it.
func (c crowd) idle() {
	c.admin.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		got := c.rows("dump_priority_levels", 6)
		if len(got) == 1 && got[0][2] == "true" && got[0][4] == "0" && got[0][5] == "0" {
			return
		}
		if time.Now().After(deadline) {
			c.admin.Errorf("after a minute the level is %v", got)
			return
		}
	}
}

// TestGreedyUserUnderLoad makes sixteen clients of the greedy user request large lists and write, some without reading
// the responses. All requests of the other user succeed. Refused requests get a Retry-After.
func TestGreedyUserUnderLoad(t *testing.T) {
	t.Parallel()
	c := startCrowd(t)
	c.greedy.get(configMaps) // makes the connection of both users: under load it may take longer than HTTP/2 allows
	large := strings.Repeat("x", 50_000)
	for i := range 20 {
		c.admin.do("POST", configMaps, `{"metadata":{"name":"large-%d"},"data":{"a":%q}}`, i, large)
	}
	var greedy sync.WaitGroup
	done := make(chan struct{})
	var mu sync.Mutex
	codes := map[int]int{}
	for i := range 16 {
		greedy.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				code := c.grab(i, n)
				mu.Lock()
				codes[code]++
				mu.Unlock()
			}
		})
	}
	for i := range 40 {
		method, path, body := "GET", configMaps+"/large-1", ""
		if i%2 == 0 {
			method, path = "POST", configMaps
			body = fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"modest-%d"}}`, i)
		}
		if code, answer := c.modest.try(method, path, body); code >= 300 {
			t.Errorf("request %d of the other user: %d %s", i, code, answer)
		}
		c.healthy("/readyz")
	}
	close(done)
	greedy.Wait()
	if codes[http.StatusOK]+codes[http.StatusCreated] == 0 || codes[http.StatusTooManyRequests] == 0 {
		t.Errorf("the greedy user got %v", codes)
	}
	for code := range codes {
		switch code {
		case http.StatusOK, http.StatusCreated, http.StatusTooManyRequests:
		default:
			t.Errorf("the greedy user got %v", codes)
		}
	}
	c.idle()
	// The metrics equal the responses. On a busy machine some requests have waited in vain.
	if got, want := c.rejected(), codes[http.StatusTooManyRequests]; got != want {
		t.Errorf("%d requests were refused, and %d are counted", want, got)
	}
}

// healthy requests a health check, which waits for no other request. A slow etcd is no failure on a busy machine.
func (c crowd) healthy(page string) {
	c.admin.Helper()
	if a := c.nobody.get(page); a.code != http.StatusOK && !bytes.Contains(a.body, []byte("[-]etcd failed")) {
		c.admin.Errorf("%s: %d %s", page, a.code, a.body)
	}
}

// rejected returns how many requests of the level were refused, for whatever reason.
func (c crowd) rejected() (n int) {
	c.admin.Helper()
	const of = `apiserver_flowcontrol_rejected_requests_total{flow_schema="crowd",priority_level="shared",`
	for line := range strings.Lines(string(c.admin.get("/metrics").body)) {
		if strings.HasPrefix(line, of) {
			one, err := strconv.Atoi(line[strings.LastIndexByte(line, ' ')+1 : len(line)-1])
			if err != nil {
				c.admin.Error(err)
			}
			n += one
		}
	}
	return n
}

// grab sends the n-th request of a connection of the greedy user, and returns the code of its response.
func (c crowd) grab(i, n int) int {
	if n%4 == 3 {
		return c.ignore()
	}
	method, path, body := "GET", configMaps, ""
	if n%4 == 1 {
		method, path = "PUT", fmt.Sprint(configMaps, "/large-", i)
		body = fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large-%d"},"data":{"a":"%050000d"}}`, i, n)
	}
	a, err := c.greedy.ask(method, path, bytes.NewReader([]byte(body)), nil)
	if err != nil {
		c.admin.Errorf("%s %s: %d, %d bytes, %v: %v", method, path, a.code, len(a.body), a.header, err)
	}
	var status struct {
		Details struct{ RetryAfterSeconds int }
	}
	if a.code == http.StatusTooManyRequests && (a.header.Get("Retry-After") == "" ||
		json.Unmarshal(a.body, &status) != nil || status.Details.RetryAfterSeconds < 1) {
		c.admin.Errorf("a refusal: %v %s", a.header, a.body)
	}
	return a.code
}

// ignore requests a list and disconnects when the response begins.
func (c crowd) ignore() int {
	r, err := http.NewRequestWithContext(c.admin.Context(), "GET", c.greedy.url+configMaps, http.NoBody)
	if err != nil {
		c.admin.Error(err)
		return 0
	}
	answer, err := c.greedy.http.Do(r)
	if err != nil {
		c.admin.Error(err)
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}
