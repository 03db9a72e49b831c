package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// TestAuditIsKubes sends the requests of testdata/audit/requests.txt to bowsprit and to a real kube-apiserver
// (reference), both with the policy in that directory, and compares their audit events for each request.
func TestAuditIsKubes(t *testing.T) {
	if reference == "" {
		t.Skip("E2E_KUBE_APISERVER is not set")
	}
	requests := readAuditRequests(t)
	policy, err := filepath.Abs("testdata/audit/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kubeLog, ourLog := filepath.Join(t.TempDir(), "kube.log"), filepath.Join(t.TempDir(), "ours.log")
	kube := startReference(t, startCluster(t, 1, nil), withoutAccounts, "--audit-policy-file="+policy,
		"--audit-log-path="+kubeLog)
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(tokens, []byte(referenceToken+`,kubernetes-admin,,"system:masters"`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ours := startServer(t, "--ephemeral", withoutAccounts, "--token-auth-file="+tokens, "--audit-policy-file="+policy,
		"--audit-log-path="+ourLog, "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc")
	for _, r := range requests {
		r.send(t, kube)
		r.send(t, ours)
	}
	theirs, mine := readAuditLog(t, kubeLog), readAuditLog(t, ourLog)
	compared := 0
	for _, r := range requests {
		a, b := theirs[r.id], mine[r.id]
		compared += len(a)
		if len(a) != len(b) {
			t.Errorf("%s: kube-apiserver has %d events, bowsprit %d:\n%v\n%v", r.line, len(a), len(b), stages(a), stages(b))
			continue
		}
		for i := range a {
			for key := range union(a[i], b[i]) {
				if !reflect.DeepEqual(a[i][key], b[i][key]) {
					x, _ := json.Marshal(a[i][key])
					y, _ := json.Marshal(b[i][key])
					t.Errorf("%s, %v: %s\nkube-apiserver %s\nbowsprit       %s", r.line, a[i]["stage"], key, x, y)
				}
			}
		}
	}
	t.Logf("%d requests, %d events", len(requests), compared)
	if compared < len(requests) {
		t.Errorf("kube-apiserver has recorded %d events of %d requests", compared, len(requests))
	}
}

func union(a, b map[string]any) map[string]bool {
	keys := map[string]bool{}
	for _, m := range []map[string]any{a, b} {
		for key := range m {
			keys[key] = true
		}
	}
	return keys
}

func stages(events []map[string]any) (out []any) {
	for _, e := range events {
		out = append(out, e["stage"])
	}
	return out
}

// auditRequest is a line of requests.txt: method, path, then headers as Name:value, then a body that begins with a
// brace or a bracket.
type auditRequest struct {
	id, line, method, path, body string
	header                       http.Header
}

func readAuditRequests(t *testing.T) (out []auditRequest) {
	t.Helper()
	text, err := os.ReadFile("testdata/audit/requests.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		head, body := line, ""
		if i := strings.IndexAny(line, "{["); i >= 0 {
			head, body = line[:i], line[i:]
		}
		words := strings.Fields(head)
		r := auditRequest{
			id: fmt.Sprintf("request-%d", len(out)), line: head, method: words[0], path: words[1], body: body,
			header: http.Header{"Authorization": {"Bearer " + referenceToken}, "User-Agent": {"audit-test"}},
		}
		r.header.Set("Audit-Id", r.id)
		if body != "" {
			r.header.Set("Content-Type", "application/json")
		}
		for _, word := range words[2:] {
			name, value, _ := strings.Cut(word, ":")
			r.header.Set(name, strings.ReplaceAll(value, "_", " "))
			if value == "" {
				r.header.Del(name)
			}
		}
		out = append(out, r)
	}
	return out
}

func (r *auditRequest) send(t *testing.T, p *process) {
	t.Helper()
	config := p.config(t)
	client, err := rest.HTTPClientFor(&rest.Config{
		Host: config.Host, TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData, Insecure: config.Insecure},
	})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(bounded(t, startLimit), r.method, config.Host+r.path,
		strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = r.header
	res, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", r.line, err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatalf("%s: %v", r.line, err)
	}
}

// readAuditLog returns the events of each request without the fields that differ from run to run.
func readAuditLog(t *testing.T, path string) map[string][]map[string]any {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string][]map[string]any{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e map[string]any
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		id, _ := e["auditID"].(string)
		if !strings.HasPrefix(id, "request-") {
			continue
		}
		out[id] = append(out[id], scrub(e).(map[string]any))
	}
	return out
}

// unsteady lists fields with values that differ from run to run.
var unsteady = map[string]bool{
	"uid": true, "resourceVersion": true, "creationTimestamp": true, "deletionTimestamp": true, "time": true,
	"requestReceivedTimestamp": true, "stageTimestamp": true, "token": true, "continue": true, "serverAddress": true,
	"expirationTimestamp":                               true,
	"authentication.kubernetes.io/issued-credential-id": true, "authentication.kubernetes.io/credential-id": true,
}

func scrub(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			switch {
			case strings.HasPrefix(key, "apiserver.latency.k8s.io/"):
				delete(v, key)
			case unsteady[key] && value != nil && value != "":
				v[key] = "(" + key + ")"
			default:
				v[key] = scrub(value)
			}
		}
	case []any:
		for i := range v {
			v[i] = scrub(v[i])
		}
	}
	return v
}
