package abac

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

func load(t *testing.T, lines ...string) (Policies, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policies")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := Load(path, slog.New(slog.DiscardHandler))
	if err != nil {
		err = fmt.Errorf("%s", strings.ReplaceAll(err.Error(), path, "FILE"))
	}
	return p, err
}

const head = `{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": `

func TestAuthorize(t *testing.T) {
	t.Parallel()
	p, err := load(t, "# comment", "", head+`{"user": "bob", "namespace": "n", "resource": "pods", "readonly": true}}`,
		head+`{"group": "ops", "namespace": "*", "resource": "*", "apiGroup": "apps"}}`,
		head+`{"user": "*", "nonResourcePath": "/logs/*", "readonly": true}}`,
		`{"user": "old", "readonly": true}`, `{"user": "older", "resource": "pods"}`, head+`{"nonResourcePath": "*"}}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, groups, attrs string
		allowed             bool
	}{
		{"bob", "", "get n/pods.", true}, {"bob", "", "delete n/pods.", false}, {"bob", "", "get m/pods.", false},
		{"bob", "", "get n/pods.apps", false}, {"bob", "", "get n/secrets.", false}, {"eve", "", "get n/pods.", false},
		{"eve", "ops", "delete n/deployments.apps", true}, {"eve", "ops", "delete n/pods.", false},
		{"eve", "system:authenticated", "get /logs/x", true}, {"eve", "system:authenticated", "post /logs/x", false},
		{"eve", "", "get /logs/x", false}, {"eve", "system:authenticated", "get /logs", false},
		{"old", "", "watch x/anything.any", true}, {"old", "", "get /any", true}, {"old", "", "create x/pods.", false},
		{"older", "", "create x/pods.any", true}, {"older", "", "get /any", false},
	} {
		verb, rest, _ := strings.Cut(tc.attrs, " ")
		info := &request.Info{Verb: verb, Path: rest}
		if rest[0] != '/' {
			info.IsResource = true
			info.Namespace, rest, _ = strings.Cut(rest, "/")
			info.Resource, info.Group, _ = strings.Cut(rest, ".")
		}
		u := &user.DefaultInfo{Name: tc.name, Groups: strings.Fields(tc.groups)}
		d, err := p.Authorize(t.Context(), u, info)
		if err != nil || d.Allowed() != tc.allowed || !d.Allowed() && d.Reason != "No policy matched." {
			t.Errorf("%s (%s) %s: %+v, %v", tc.name, tc.groups, tc.attrs, d, err)
		}
	}
	rules, err := p.Rules(t.Context(), &user.DefaultInfo{Name: "bob", Groups: []string{"ops"}}, "n")
	if got := fmt.Sprint(rules.Resources, rules.NonResources, rules.Incomplete, err); got !=
		"[{[get list watch] [] [pods] []} {[*] [apps] [*] []}] [] false <nil>" {
		t.Errorf("rules: %s", got)
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"{": "error reading policy file FILE, line 1: {: couldn't get version/kind; json parse error: " +
			"unexpected end of JSON input",
		head + `{"user": 7}}`: "json: cannot unmarshal number into Go struct field",
		`{"apiVersion": "abac.authorization.kubernetes.io/v9", "kind": "Policy"}`: "no kind \"Policy\" is registered " +
			"for version \"abac.authorization.kubernetes.io/v9\"",
	} {
		if _, err := load(t, line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", line, err, want)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none"), nil); !os.IsNotExist(err) {
		t.Error(err)
	}
}
