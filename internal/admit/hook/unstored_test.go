package hook_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestUnstored records webhook requests for connections, bindings, evictions, reviews and tokens, which store nothing,
// and for events, which are in two groups. testdata/unstored.txt comes from a running kube-apiserver.
func TestUnstored(t *testing.T) {
	t.Parallel()
	golden, err := os.ReadFile("testdata/unstored.txt")
	if err != nil {
		t.Fatal(err)
	}
	c := start(t)
	pod := object{
		"metadata": object{"name": "one"}, "spec": object{"containers": []any{object{"name": "a", "image": "b"}}},
	}
	c.must("POST", "/api/v1/nodes", object{"metadata": object{"name": "node1"}})
	c.must("POST", "/api/v1/namespaces/default/pods", pod)
	c.must("POST", "/api/v1/namespaces/default/services",
		object{"metadata": object{"name": "one"}, "spec": object{"ports": []any{object{"port": 80}}}})
	c.must("POST", "/api/v1/namespaces/default/serviceaccounts", object{"metadata": object{"name": "one"}})
	l := listen(t, func(string, object) object { return object{"allowed": true} })
	rules := func(w object) {
		rule := func(resources []any, groups ...any) object {
			return object{
				"apiGroups": groups, "apiVersions": []any{"v1"}, "operations": []any{"*"}, "resources": resources,
			}
		}
		w["rules"] = []any{
			rule([]any{"bindings", "pods/*", "nodes/*", "services/*", "events", "serviceaccounts/token"}, ""),
			rule([]any{"*"}, "authentication.k8s.io", "authorization.k8s.io"),
		}
	}
	c.register(mutating, "m", l.webhook("m", "/mutating", rules))
	c.register(validating, "v", l.webhook("v", "/validating", rules))

	var want []string
	check := func() {
		if len(want) == 0 {
			return
		}
		method, rest, _ := strings.Cut(strings.TrimPrefix(want[0], "## "), " ")
		path, body, _ := strings.Cut(rest, " ")
		got := []string{want[0], c.answer(method, path, body)}
		if want[1] == "*" {
			got[1] = "*"
		}
		if got = append(got, reviews(l)...); !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	for line := range strings.Lines(string(golden)) {
		line = strings.TrimRight(line, " \n")
		if strings.HasPrefix(line, "## ") {
			check()
			want = nil
		}
		if !strings.HasPrefix(line, "# ") {
			want = append(want, line)
		}
	}
	check()
}

// answer sends a request and returns the code and the message of its response, "ok" for an object without one.
func (c *client) answer(method, path, body string) string {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, bytes.NewBufferString(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := c.http.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	var obj object
	if err := json.Unmarshal(raw, &obj); err != nil {
		return strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, raw))
	}
	message, _ := obj["message"].(string)
	if message == "" {
		message = "ok"
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, message)
}

// reviews returns a listener's requests, one line each, or one for two equal requests.
func reviews(l *listener) (out []string) {
	var last string
	for _, r := range l.requests() {
		raw, _ := json.Marshal(withoutChance(r["request"]))
		if text := string(raw); len(out) == 1 && text == last {
			out[0] = "  both " + text
		} else {
			out, last = append(out, fmt.Sprintf("  %s %s", r["path"].(string)[1:], text)), text
		}
	}
	return out
}

// withoutChance removes random parts from a value.
func withoutChance(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for name, value := range v {
			switch name {
			case "uid", "creationTimestamp", "resourceVersion", "time", "managedFields", "userInfo":
			default:
				out[name] = withoutChance(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = withoutChance(v[i])
		}
		return out
	}
	return v
}
