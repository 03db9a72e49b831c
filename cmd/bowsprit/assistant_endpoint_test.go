package main

import (
	"context"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/assistant"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/assistant/endpoint"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/testserver"
)

// mcpServer is a server with the tools at /mcp, and a role for that path.
type mcpServer struct {
	*testserver.Server
	admin kubernetes.Interface
}

func startMCP(t *testing.T, options assistant.Options, more ...func(*bowsprit.Config)) *mcpServer {
	t.Helper()
	s := &mcpServer{Server: testserver.Start(t, append(more, func(c *bowsprit.Config) {
		c.Extensions = append(c.Extensions, config.NewExtension(part.Extension{Part: endpoint.Part(options)}))
	})...)}
	var err error
	if s.admin, err = kubernetes.NewForConfig(s.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	_, err = s.admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "assistants"},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/mcp"}, Verbs: []string{"post", "delete"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// user returns the configuration of a new user with cluster roles.
func (s *mcpServer) user(t *testing.T, name string, roles ...string) *rest.Config {
	t.Helper()
	for _, role := range roles {
		_, err := s.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-" + role},
			Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: name}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s.config(t, name)
}

// config returns the configuration of a user with groups.
func (s *mcpServer) config(t *testing.T, name string, groups ...string) *rest.Config {
	t.Helper()
	user, err := s.User(name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return user.RESTConfig()
}

// connect connects the SDK's client as a user.
func (s *mcpServer) connect(t *testing.T, as *rest.Config) (*mcp.ClientSession, error) {
	t.Helper()
	client, err := rest.HTTPClientFor(as)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(context.WithoutCancel(t.Context()),
		&mcp.StreamableClientTransport{Endpoint: s.URL() + "/mcp", HTTPClient: client, MaxRetries: -1}, nil)
	if err == nil {
		t.Cleanup(func() { _ = session.Close() })
	}
	return session, err
}

// mcpRequest is a request to /mcp without the SDK.
type mcpRequest struct {
	method, session, host, body string
	headers                     map[string]string
	as                          *rest.Config
}

const (
	mcpHello = `{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
		"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}`
	mcpList = `{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list",
		"arguments": {"kind": "pods"}}}`
)

// send sends a request, and returns the response and its body.
func (s *mcpServer) send(t *testing.T, x mcpRequest) (*http.Response, string) {
	t.Helper()
	client, err := rest.HTTPClientFor(x.as)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	if x.method == "" {
		x.method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(t.Context(), x.method, s.URL()+"/mcp", strings.NewReader(x.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if x.session != "" {
		r.Header.Set("Mcp-Session-Id", x.session)
	}
	for name, value := range x.headers {
		r.Header.Set(name, value)
	}
	if x.host != "" {
		r.Host = x.host
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// begin starts a session without the SDK.
func (s *mcpServer) begin(t *testing.T, as *rest.Config, headers map[string]string) string {
	t.Helper()
	resp, text := s.send(t, mcpRequest{as: as, body: mcpHello, headers: headers})
	name := resp.Header.Get("Mcp-Session-Id")
	if resp.StatusCode != http.StatusOK || name == "" {
		t.Fatalf("initialize: %s %s", resp.Status, text)
	}
	return name
}

// TestMCPRights calls tools as users of different rights. Each gets the same objects as from the server itself, and the
// path needs permission like each other path.
func TestMCPRights(t *testing.T) {
	t.Parallel()
	s := startMCP(t, assistant.Options{AllowApply: true, AllowDelete: true})
	for user, want := range map[string]struct {
		roles                  []string
		enters, reads, applies bool
	}{
		"nobody":   {nil, false, false, false},
		"reader":   {[]string{"view"}, false, false, false},
		"entering": {[]string{"assistants"}, true, false, false},
		"viewer":   {[]string{"assistants", "view"}, true, true, false},
		"editor":   {[]string{"assistants", "edit"}, true, true, true},
	} {
		session, err := s.connect(t, s.user(t, user, want.roles...))
		if (err == nil) != want.enters {
			t.Errorf("%s: %v", user, err)
		}
		if err != nil {
			continue
		}
		got, failed := ask(t, session, "list", map[string]any{"kind": "configmaps"})
		if failed == want.reads || want.reads != strings.Contains(got, "| kube-root-ca.crt\t") ||
			failed != strings.Contains(got, `User "`+user+`" cannot list resource "configmaps"`) {
			t.Errorf("%s: %s", user, got)
		}
		got, failed = ask(t, session, "plan", map[string]any{
			"manifests": "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + user + "}, data: {k: v}}"})
		plan := regexp.MustCompile(`(?m)^plan: (\S+),`).FindStringSubmatch(got)
		if failed == want.applies || (plan != nil) != want.applies {
			t.Errorf("%s: %s", user, got)
			continue
		}
		if plan != nil {
			if got, failed = ask(t, session, "apply", map[string]any{"plan": plan[1]}); failed {
				t.Errorf("%s: %s", user, got)
			}
		}
		_, err = s.admin.CoreV1().ConfigMaps("default").Get(t.Context(), user, metav1.GetOptions{})
		if (err == nil) != want.applies {
			t.Errorf("%s: the object of the plan: %v", user, err)
		}
		for _, tool := range []string{"why_denied", "list_kinds", "events", "explain_kind"} {
			ask(t, session, tool, map[string]any{"kind": "pods", "verb": "get", "resource": "pods"}) // must answer
		}
	}
}

// TestMCPReadOnly checks that the tools without flags change nothing and mask Secrets.
func TestMCPReadOnly(t *testing.T) {
	t.Parallel()
	s := startMCP(t, assistant.Options{})
	session, err := s.connect(t, s.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if !tool.Annotations.ReadOnlyHint {
			t.Errorf("the tool %s", tool.Name)
		}
	}
	made := s.Kubectl("create", "secret", "generic", "login", "--from-literal=k=marker")
	if out, err := made.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	got, failed := ask(t, session, "get", map[string]any{"kind": "secret", "name": "login"})
	if failed || !strings.Contains(got, "<masked>") || strings.Contains(got, "bWFya2Vy") {
		t.Error(got)
	}
}

// TestMCPAttacks sends requests that pages of other sites, other users and lost credentials can cause.
func TestMCPAttacks(t *testing.T) {
	t.Parallel()
	s := startMCP(t, assistant.Options{})
	alice := s.user(t, "alice", "assistants", "view")
	bob := s.user(t, "bob", "assistants", "view")
	nobody := rest.AnonymousClientConfig(s.RESTConfig())
	session := s.begin(t, alice, nil)
	host := strings.TrimPrefix(s.URL(), "https://")
	header := func(name, value string) map[string]string { return map[string]string{name: value} }
	admin := s.RESTConfig()
	for name, c := range map[string]struct {
		mcpRequest
		want int
		text string
	}{
		"the user":    {mcpRequest{as: alice}, 200, `"result"`},
		"own page":    {mcpRequest{as: alice, headers: header("Origin", s.URL())}, 200, `"result"`},
		"other user":  {mcpRequest{as: bob}, 403, "the session belongs to another user"},
		"ends it":     {mcpRequest{as: bob, method: "DELETE"}, 403, "the session belongs to another user"},
		"no one":      {mcpRequest{as: nobody}, 403, "system:anonymous"},
		"cookie":      {mcpRequest{as: nobody, headers: header("Cookie", "Mcp-Session-Id="+session)}, 403, "anonymous"},
		"wrong token": {mcpRequest{as: nobody, headers: header("Authorization", "Bearer x")}, 401, ""},
		"unknown":     {mcpRequest{as: alice, session: "x"}, 404, "there is no such session"},
		"origin":      {mcpRequest{as: alice, headers: header("Origin", "https://evil.example")}, 403, "a page of"},
		"http":        {mcpRequest{as: alice, headers: header("Origin", "http://"+host)}, 403, "a page of"},
		"null":        {mcpRequest{as: alice, headers: header("Origin", "null")}, 403, "a page of"},
		"site":        {mcpRequest{as: alice, headers: header("Sec-Fetch-Site", "cross-site")}, 403, "another site"},
		"host":        {mcpRequest{as: alice, host: "evil.example"}, 403, "no certificate for the host"},
		"rebound": {mcpRequest{as: alice, host: "evil.example", headers: header("Origin", "https://evil.example")}, 403,
			"no certificate for the host"},
		"stream":       {mcpRequest{as: alice, method: "GET"}, 403, "cannot get path"},
		"admin GET":    {mcpRequest{as: admin, method: "GET"}, 405, "GET is not served"},
		"impersonates": {mcpRequest{as: admin, headers: header("Impersonate-User", "alice")}, 403, "another user"},
		"long":         {mcpRequest{as: alice, body: strings.Repeat(" ", assistant.MaxRequest) + mcpList}, 413, ""},
	} {
		if c.session == "" {
			c.session = session
		}
		if c.body == "" {
			c.body = mcpList
		}
		resp, text := s.send(t, c.mcpRequest)
		if resp.StatusCode != c.want || !regexp.MustCompile(c.text).MatchString(text) {
			t.Errorf("%s: %s %s", name, resp.Status, text)
		}
		if resp.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: the response sets a cookie", name)
		}
	}
	if resp, text := s.send(t, mcpRequest{as: admin, method: "DELETE"}); resp.StatusCode != 400 {
		t.Errorf("DELETE without a session: %s %s", resp.Status, text)
	}
	if resp, text := s.send(t, mcpRequest{as: alice, session: session, body: mcpList}); resp.StatusCode != 200 {
		t.Errorf("the session is lost: %s %s", resp.Status, text)
	}
}

// TestMCPChangedIdentity checks that a session ends when the groups of its user change, and that impersonation is part
// of the identity.
func TestMCPChangedIdentity(t *testing.T) {
	t.Parallel()
	s := startMCP(t, assistant.Options{})
	jane := map[string]string{"Impersonate-User": "jane", "Impersonate-Group": "system:masters"}
	session := s.begin(t, s.RESTConfig(), jane)
	resp, text := s.send(t, mcpRequest{as: s.RESTConfig(), session: session, headers: jane, body: mcpList})
	if resp.StatusCode != 200 || strings.Contains(text, `"isError":true`) {
		t.Errorf("%s %s", resp.Status, text)
	}
	changed := maps.Clone(jane)
	changed["Impersonate-Uid"] = "1"
	for _, headers := range []map[string]string{changed, jane} {
		resp, text := s.send(t, mcpRequest{as: s.RESTConfig(), session: session, headers: headers, body: mcpList})
		if resp.StatusCode != http.StatusNotFound || !strings.Contains(text, "ended") {
			t.Errorf("%v: %s %s", headers, resp.Status, text)
		}
	}
	renewed := s.begin(t, s.config(t, "admin", "system:masters"), nil)
	resp, text = s.send(t, mcpRequest{as: s.config(t, "admin", "system:masters"), session: renewed, body: mcpList})
	if resp.StatusCode != 200 {
		t.Errorf("a new certificate of the same user: %s %s", resp.Status, text)
	}
}

// TestMCPSessionsAreBounded starts more sessions than a user may have: the oldest ends. DELETE ends one, too.
func TestMCPSessionsAreBounded(t *testing.T) {
	t.Parallel()
	s := startMCP(t, assistant.Options{})
	admin := s.RESTConfig()
	var all []string
	for range 9 {
		all = append(all, s.begin(t, admin, nil))
	}
	code := func(session string) int {
		resp, _ := s.send(t, mcpRequest{as: admin, session: session, body: mcpList})
		return resp.StatusCode
	}
	if first, second := code(all[0]), code(all[1]); first != 404 || second != 200 {
		t.Errorf("the first session %d, the second %d", first, second)
	}
	if resp, text := s.send(t, mcpRequest{as: admin, session: all[1], method: "DELETE"}); resp.StatusCode != 204 {
		t.Errorf("%s %s", resp.Status, text)
	}
	if got := code(all[1]); got != 404 {
		t.Errorf("%d after its end", got)
	}
}

// TestMCPIdleSessionsEnd moves the server's clock.
func TestMCPIdleSessionsEnd(t *testing.T) {
	t.Parallel()
	clock := testserver.NewClock()
	s := startMCP(t, assistant.Options{}, testserver.WithClock(clock))
	session := s.begin(t, s.RESTConfig(), nil)
	for _, step := range []struct {
		minutes, want int
	}{{29, 200}, {29, 200}, {31, 404}} {
		clock.Advance(time.Duration(step.minutes) * time.Minute)
		resp, text := s.send(t, mcpRequest{as: s.RESTConfig(), session: session, body: mcpList})
		if resp.StatusCode != step.want {
			t.Errorf("after %d minutes: %s %s", step.minutes, resp.Status, text)
		}
	}
}

// TestMCPAnonymous checks that users without credentials get no session, even with permission for the path.
func TestMCPAnonymous(t *testing.T) {
	t.Parallel()
	s := startMCP(t, assistant.Options{})
	s.user(t, "system:anonymous", "assistants", "view")
	resp, text := s.send(t, mcpRequest{as: rest.AnonymousClientConfig(s.RESTConfig()), body: mcpHello})
	if resp.StatusCode != http.StatusUnauthorized || !strings.Contains(text, "a session belongs to a user") {
		t.Errorf("%s %s", resp.Status, text)
	}
}

// TestMCPLendsItsSeat plans a change on a server that executes one write at a time: the call, which is a POST, does not
// hold up its own request.
func TestMCPLendsItsSeat(t *testing.T) {
	t.Parallel()
	s := startMCP(t, assistant.Options{}, func(c *bowsprit.Config) {
		off := false
		c.Limits.PriorityAndFairness, c.Limits.MaxMutatingRequestsInFlight = &off, 1
	})
	session, err := s.connect(t, s.user(t, "editor", "assistants", "edit"))
	if err != nil {
		t.Fatal(err)
	}
	got, failed := ask(t, session, "plan", map[string]any{
		"manifests": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}"})
	if failed || !strings.Contains(got, "k: v") {
		t.Error(got)
	}
}

// TestMCPOff checks that a server without the part does not have the path.
func TestMCPOff(t *testing.T) {
	t.Parallel()
	s := &mcpServer{Server: testserver.Start(t)}
	if resp, _ := s.send(t, mcpRequest{as: s.RESTConfig(), body: mcpHello}); resp.StatusCode != http.StatusNotFound {
		t.Error(resp.Status)
	}
}

// TestMCPRecords checks the audit events and the metrics of a call: they are the caller's.
func TestMCPRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	rules := "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"
	if err := os.WriteFile(policy, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startMCP(t, assistant.Options{}, func(c *bowsprit.Config) {
		c.Audit.PolicyFile, c.Audit.LogFile, c.Audit.Log.Mode = policy, log, "blocking-strict"
	})
	session, err := s.connect(t, s.user(t, "viewer", "assistants", "view"))
	if err != nil {
		t.Fatal(err)
	}
	ask(t, session, "list", map[string]any{"kind": "pods"})
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/mcp", "/api/v1/namespaces/default/pods"} {
		event := regexp.MustCompile(`(?m)^.*"requestURI":"` + path + `[?"].*"viewer".*"sourceIPs":\["127.0.0.1"\]`)
		if !event.Match(text) {
			t.Errorf("no event of %s in\n%s", path, text)
		}
	}
	client, err := rest.HTTPClientFor(s.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	resp, err := client.Get(s.URL() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	metrics, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^apiserver_request_total\{.*subresource="/mcp".*verb="POST".*\} \d`).Match(metrics) {
		t.Errorf("no metric of /mcp in\n%s", metrics)
	}
}
