package wire

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/testing/logtest"
	"github.com/bowsprit/bowsprit/internal/testing/script"
	"github.com/bowsprit/bowsprit/testserver"
)

// hidden is a part of all sensitive values of these tests.
const hidden = "hunter2"

// auditPolicy records everything, and sam's writes as changes.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- {level: None, resources: [{group: "", resources: [secrets]}]}
- {level: RequestResponse, users: [sam], changes: JSONPatch}
- {level: RequestResponse}
`

// vaults is a definition with sensitive fields of all sorts.
const vaults = `{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "vaults.example.com"},
	"spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "vaults", "kind": "Vault"}, "versions": [
		{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
		"additionalPrinterColumns": [{"name": "Host", "type": "string", "jsonPath": ".spec.host"}],
		"selectableFields": [{"jsonPath": ".spec.host"}],
		"schema": {"openAPIV3Schema": {"type": "object",
			"x-kubernetes-validations": [{"rule": "!has(self.spec) || !has(self.spec.pattern) || !has(self.spec.host) || self.spec.host != 'bad' || 'a'.matches(self.spec.pattern)"},
				{"rule": "!has(self.spec) || !has(self.spec.host) || self.spec.host != 'bad'", "message": "bad host"}],
			"properties": {
			"spec": {"type": "object", "properties": {
				"host": {"type": "string"},
				"pattern": {"type": "string", "maxLength": 100, "x-kubernetes-sensitive-data": true},
				"password": {"type": "string", "maxLength": 30, "pattern": "^[a-z0-9-]*$", "x-kubernetes-sensitive-data": true,
					"x-kubernetes-validations": [{"rule": "!self.endsWith('-no')", "message": "not this one"}]},
				"day": {"type": "string", "format": "date", "x-kubernetes-sensitive-data": true},
				"kind": {"type": "string", "enum": ["hunter", "a", "b"], "x-kubernetes-sensitive-data": true},
				"tls": {"type": "object", "x-kubernetes-sensitive-data": true, "additionalProperties": {"type": "string"}},
				"any": {"x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-sensitive-data": true},
				"data": {"type": "object", "additionalProperties": {"type": "string", "x-kubernetes-sensitive-data": true}},
				"users": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
					"items": {"type": "object", "required": ["name"], "properties": {
						"name": {"type": "string"}, "key": {"type": "string", "x-kubernetes-sensitive-data": true}}}}}},
			"status": {"type": "object", "properties": {
				"phase": {"type": "string"}, "token": {"type": "string", "x-kubernetes-sensitive-data": true}}}}}}},
		{"name": "v1alpha1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object",
			"x-kubernetes-preserve-unknown-fields": true}}}]}}`

// startSensitive starts a server with vaults that records and logs everything. mona may do all with vaults except
// reading sensitive fields; sam may also read these.
func startSensitive(t *testing.T) (config *rest.Config, audit string, log *logtest.Log) {
	t.Helper()
	dir := t.TempDir()
	tokens, policy := filepath.Join(dir, "tokens.csv"), filepath.Join(dir, "policy.yaml")
	audit = filepath.Join(dir, "audit.log")
	for file, text := range map[string]string{tokens: "mona,mona,1\nsam,sam,2\nlisa,lisa,3\n", policy: auditPolicy} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log = &logtest.Log{}
	server := testserver.Start(t, func(c *bowsprit.Config) {
		c.Authentication.TokenAuthFile = tokens
		c.Audit.PolicyFile, c.Audit.LogFile = policy, audit
		c.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.Level(-9)}))
	})
	config = server.RESTConfig()
	admin := viewer{T: t, http: client(t, config), url: server.URL()}
	admin.do("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "%s", vaults)
	for name, rules := range map[string]string{
		"mona": `{"apiGroups":["example.com"],"resources":["vaults","vaults/status"],"verbs":["*"]}`,
		"sam":  `{"apiGroups":["example.com"],"resources":["vaults","vaults/status","vaults/sensitive"],"verbs":["*"]}`,
		"lisa": `{"apiGroups":["example.com"],"resources":["vaults"],"verbs":["*"]},
			{"apiGroups":["example.com"],"resources":["vaults/sensitive"],"verbs":["list"]}`,
	} {
		admin.do("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", `{"metadata":{"name":%q},"rules":[%s]}`, name, rules)
		admin.do("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", `{"metadata":{"name":%q},"roleRef":{`+
			`"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%[1]q},"subjects":[{`+
			`"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":%[1]q}]}`, name)
	}
	return config, audit, log
}

// TestSensitive runs the scripts about sensitive fields, and looks for values in the audit log and in the log.
func TestSensitive(t *testing.T) {
	t.Parallel()
	config, audit, log := startSensitive(t)
	t.Run("scripts", func(t *testing.T) { script.Run(t, "testdata/sensitive/*.txt", config) })
	quiet(t, audit, log)
}

// quiet fails if a sensitive value is in the audit log or in the log.
func quiet(t *testing.T, audit string, log *logtest.Log) {
	t.Helper()
	recorded, err := os.ReadFile(audit)
	if err != nil || !bytes.Contains(recorded, []byte("vaults")) {
		t.Fatalf("nothing is recorded: %v", err)
	}
	for where, lines := range map[string]string{"audit log": string(recorded), "log": log.String()} {
		for line := range strings.Lines(lines) {
			if strings.Contains(line, hidden) {
				t.Errorf("the %s shows a sensitive value: %s", where, line)
			}
		}
	}
}

// snoop is a client without the permission to read sensitive fields, which searches all responses for them.
type snoop struct {
	*testing.T
	http   *http.Client
	url    string
	random *rand.Rand
}

const vaultsPath = "/apis/example.com/v1/namespaces/default/vaults"

func (s *snoop) pick(of ...string) string { return of[s.random.IntN(len(of))] }

// ask sends a request and fails if the response contains a sensitive value in any encoding.
func (s *snoop) ask(method, path, contentType, accept, body string) {
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	r.Header.Set("Accept-Encoding", "identity")
	if body != "" {
		r.Header.Set("Content-Type", contentType)
	}
	answer, err := s.http.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		s.Fatal(err)
	}
	text := string(raw) + fmt.Sprint(answer.Header)
	if strings.Contains(text, hidden) {
		s.Errorf("%s %s (%s, %s) %s\nis answered with %d %q", method, path, contentType, accept, body, answer.StatusCode, text)
	}
}

// step sends a random request.
func (s *snoop) step() {
	name := s.pick("a", "b", "c")
	one := s.pick(vaultsPath, strings.Replace(vaultsPath, "v1", "v1alpha1", 1)) + "/" + name
	accept := s.pick("application/json", "application/yaml", "application/cbor",
		"application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json")
	lists := s.pick("application/json", "application/yaml", "application/cbor",
		"application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	many := s.pick(vaultsPath, "/apis/example.com/v1/vaults", "/apis/example.com/v1alpha1/vaults")
	query := s.pick("", "?dryRun=All", "?fieldValidation=Strict")
	switch s.random.IntN(8) {
	case 0:
		s.ask("GET", one+s.pick("", "?includeObject=Object"), "", accept, "")
	case 1:
		s.ask("GET", many+s.pick("?", "?includeObject=Object&", "?fieldSelector=spec.host%3Da&", "?visible=true&")+
			s.pick("", "limit=1", "resourceVersion=0"), "", lists, "")
	case 2:
		s.ask("GET", many+"?watch=true&timeoutSeconds=1&allowWatchBookmarks=true"+s.pick("", "&resourceVersion=1",
			"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "&includeObject=Object"), "", lists, "")
	case 3:
		s.ask("PATCH", one+s.pick("", "/status")+query, "application/merge-patch+json", accept, s.pick(
			`{"spec":{"host":"a"}}`, `{"spec":{"host":"bad"}}`, `{"spec":{"host":"bad"}}`,
			`{"metadata":{"labels":{"a":"b"}}}`, `{"spec":{"password":"<omitted>"}}`,
			`{"spec":{"password":1}}`, `{"spec":{"unknown":1}}`, `{"spec":"s"}`, `{"spec":{"users":"x"}}`,
			`{"status":{"phase":"x"}}`,
			`{"metadata":{"managedFields":[]}}`, `{"apiVersion":"x/v1"}`, `{"metadata":{"name":"other"}}`))
	case 4:
		s.ask("PATCH", one+query, "application/json-patch+json", accept, "["+s.pick(
			`{"op":"copy","from":"/spec/password","path":"/spec/host"}`,
			`{"op":"move","from":"/spec/tls","path":"/metadata/annotations"}`,
			`{"op":"copy","from":"/spec/data","path":"/metadata/labels"}`,
			`{"op":"copy","from":"/spec","path":"/metadata/annotations"}`,
			`{"op":"copy","from":"/spec/password","path":""}`, `{"op":"copy","from":"/spec/any","path":""}`,
			`{"op":"copy","from":"/spec/users/0/key","path":"/spec/users/0/name"}`,
			`{"op":"copy","from":"/spec/password","path":"/metadata/name"}`,
			`{"op":"test","path":"/spec/password","value":"x"}`, `{"op":"replace","path":"/kind","value":7}`,
			`{"op":"add","path":"/spec/x","value":7}`, `{"op":"copy","from":"/metadata/managedFields","path":"/spec/any"}`)+"]")
	case 5:
		path := one + "?fieldManager=" + s.pick("m", "n") + s.pick("", "&force=true", "&dryRun=All")
		s.ask("PATCH", path, "application/apply-patch+yaml", accept,
			`{"apiVersion":"example.com/`+strings.Split(one, "/")[3]+`","kind":"Vault","metadata":{"name":"`+name+`"},"spec":`+
				s.pick(`{"host":"a"}`, `{"password":"<omitted>"}`, `{"tls":{"a":"b"}}`, `{"tls":"<omitted>","any":"<omitted>"}`,
					`{"users":[{"name":"u","key":"<omitted>"}]}`, `{"data":{"a":"x"}}`, `{"password":7}`,
					`{"users":[{"key":"x"}]}`,
					`{"pattern":"["}`)+"}")
	case 6:
		s.ask("PUT", one+s.pick("", "/status")+query, "application/json", accept, `{"apiVersion":"example.com/`+
			strings.Split(one, "/")[3]+`","kind":"Vault","metadata":{"name":"`+name+`","resourceVersion":"1"},`+
			`"spec":{"password":"<omitted>"}}`)
	default:
		s.ask("POST", strings.TrimSuffix(one, "/"+name)+query, "application/json", accept,
			`{"apiVersion":"example.com/`+strings.Split(one, "/")[3]+`","kind":"Vault","metadata":{"name":"`+name+
				`"},"spec":{"password":"`+s.pick("<omitted>", "x")+`"}}`)
	}
}

// TestSensitiveAtRandom lets one client write sensitive values, and another client without permission send random
// requests.
func TestSensitiveAtRandom(t *testing.T) {
	t.Parallel()
	config, audit, log := startSensitive(t)
	as := func(user string) *http.Client {
		c := rest.AnonymousClientConfig(config)
		c.BearerToken = user
		return client(t, c)
	}
	sam := viewer{T: t, http: as("sam"), url: config.Host}
	random := rand.New(rand.NewPCG(1, 2))
	mona := &snoop{T: t, http: as("mona"), url: config.Host, random: random}
	for i := range 600 {
		if i%20 == 0 {
			for _, name := range []string{"a", "b", "c"} {
				write(sam, random, name)
			}
		}
		mona.step()
		if t.Failed() {
			return
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		mona.ask("DELETE", vaultsPath+"/"+name, "application/json", "application/json", "")
	}
	quiet(t, audit, log)
}

// write makes a vault with sensitive values and a finalizer.
func write(sam viewer, random *rand.Rand, name string) {
	value := func() string { return fmt.Sprintf("%s-%d", hidden, random.IntN(3)) }
	obj := map[string]any{
		"apiVersion": "example.com/v1", "kind": "Vault",
		"metadata": map[string]any{"name": name, "finalizers": []any{"example.com/wait"}, "annotations": map[string]any{
			"kubectl.kubernetes.io/last-applied-configuration": value(),
		}},
		"spec": map[string]any{
			"host": "a", "password": value(), "pattern": "[" + value(), "tls": map[string]any{value(): value()},
			"any": []any{value()}, "data": map[string]any{"a": value()},
			"users": []any{map[string]any{"name": "u", "key": value()}, map[string]any{"name": "v", "key": value()}},
		},
	}
	body := string(codec.AppendJSON(nil, obj))
	if code, answer := sam.try("POST", vaultsPath, body); code == http.StatusConflict {
		delete(obj["metadata"].(map[string]any), "finalizers")
		sam.do("PATCH", vaultsPath+"/"+name, "%s", string(codec.AppendJSON(nil, obj)))
	} else if code != http.StatusCreated {
		sam.Fatalf("%d %s", code, answer)
	}
	sam.do("PATCH", vaultsPath+"/"+name+"/status", `{"status":{"phase":"p","token":%q}}`, value())
	if got := sam.do("GET", vaultsPath+"/"+name, ""); !bytes.Contains(got, []byte(hidden)) {
		sam.Fatalf("sam may read it, but gets %s", got)
	}
}
