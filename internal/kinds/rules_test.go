package kinds_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

var update = flag.Bool("update", false, "rewrite the expectations under testdata")

// step is one case of a script: a write of object, over old if there is one, passes the rules in the server's order.
type step struct {
	Name        string         `json:"name"`
	Kind        string         `json:"kind"`
	Object      map[string]any `json:"object"`
	Old         map[string]any `json:"old,omitempty"`
	Subresource string         `json:"subresource,omitempty"`
	// Fill makes data.big this many bytes long.
	Fill int `json:"fill,omitempty"`
	// Coordinated is true if the feature gate of Leases is on.
	Coordinated bool `json:"coordinated,omitempty"`

	// The expected results.
	DecodeError string         `json:"decodeError,omitempty"`
	Unknown     []string       `json:"unknown,omitempty"`
	Errors      []string       `json:"errors,omitempty"`
	Warnings    []string       `json:"warnings,omitempty"`
	Result      map[string]any `json:"result,omitempty"` // omitted if there are errors
}

// TestRules runs the scripts in the kinds' packages, such as batch/testdata/job.yaml. With -update it rewrites their
// expected results; test/oracle-builtins compares them with Kubernetes.
func TestRules(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*/testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasPrefix(file, "plugin/") {
			continue
		}
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			runScript(t, file)
		})
	}
}

func runScript(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var steps []step
	if err := yaml.UnmarshalStrict(data, &steps); err != nil {
		t.Fatal(err)
	}
	for i, s := range steps {
		got := s
		got.DecodeError, got.Unknown, got.Errors, got.Warnings, got.Result = "", nil, nil, nil, nil
		kind := resource(t, s.Kind)
		if s.Coordinated {
			kinds.CoordinateLeases([]*catalog.Resource{kind})
		}
		obj, old := ints(t, s.Object), ints(t, s.Old)
		if s.Fill > 0 {
			obj["data"] = map[string]any{"big": strings.Repeat("x", s.Fill)}
		}
		run(t, strategyOf(kind, obj), obj, old, &got)
		if *update {
			steps[i] = got
			continue
		}
		if !reflect.DeepEqual(canonical(t, got), canonical(t, s)) {
			g, _ := yaml.Marshal(got)
			w, _ := yaml.Marshal(s)
			t.Errorf("%s:\ngot\n%s\nwant\n%s", s.Name, g, w)
		}
	}
	if *update {
		out, err := yaml.Marshal(steps)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, out, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// strategyOf returns the rules of the version that an object names, or of the storage version if there is no such
// version.
func strategyOf(r *catalog.Resource, obj map[string]any) *catalog.Strategy {
	for _, v := range r.Versions {
		if r.APIVersion(v) == obj["apiVersion"] {
			return r.StrategyFor(v)
		}
	}
	return r.Strategy
}

func run(t *testing.T, rules *catalog.Strategy, obj, old map[string]any, got *step) {
	env := catalog.Env{Now: now}
	unknown, err := rules.Decode(obj)
	if err != nil {
		got.DecodeError = err.Error()
		return
	}
	got.Unknown = unknown
	if rules.Default != nil {
		rules.Default(obj)
	}
	var errs field.ErrorList
	if old == nil {
		if rules.PrepareCreate != nil {
			rules.PrepareCreate(obj, env)
		}
		errs = rules.Validate(t.Context(), obj)
	} else {
		if _, err := rules.Decode(old); err != nil {
			got.DecodeError = "old: " + err.Error()
			return
		}
		if rules.PrepareUpdate != nil {
			rules.PrepareUpdate(obj, old, got.Subresource, env)
		}
		errs = rules.ValidateUpdate(t.Context(), obj, old, got.Subresource)
	}
	for _, e := range errs {
		got.Errors = append(got.Errors, e.Error())
	}
	if rules.Warnings != nil {
		got.Warnings = rules.Warnings(obj, nil, "")
	}
	if len(errs) == 0 {
		got.Result = obj
	}
}

// ints returns a copy of obj with whole numbers as int64, the form that requests have.
func ints(t *testing.T, obj map[string]any) map[string]any {
	if obj == nil {
		return nil
	}
	var fix func(v any) any
	fix = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			out := map[string]any{}
			for k, e := range v {
				out[k] = fix(e)
			}
			return out
		case []any:
			out := make([]any, len(v))
			for i := range v {
				out[i] = fix(v[i])
			}
			return out
		case float64:
			if v == float64(int64(v)) {
				return int64(v)
			}
		}
		return v
	}
	return fix(obj).(map[string]any)
}

func canonical(t *testing.T, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestNamespaceDelete(t *testing.T) {
	t.Parallel()
	rules := resource(t, "Namespace").Strategy
	env := catalog.Env{Now: now}
	ns := map[string]any{
		"metadata": map[string]any{"name": "x"},
		"spec":     map[string]any{"finalizers": []any{"kubernetes"}},
		"status":   map[string]any{"phase": "Active"},
	}
	if !rules.PrepareDelete(ns, env) {
		t.Fatal("a namespace with contents is removed at once")
	}
	if got := ns["metadata"].(map[string]any)["deletionTimestamp"]; got != "2026-03-04T05:06:07Z" {
		t.Errorf("deletionTimestamp %v", got)
	}
	if got := ns["status"].(map[string]any)["phase"]; got != "Terminating" {
		t.Errorf("phase %v", got)
	}
	env.Now = env.Now.Add(1)
	if !rules.PrepareDelete(ns, env) || ns["metadata"].(map[string]any)["deletionTimestamp"] != "2026-03-04T05:06:07Z" {
		t.Error("a second deletion moves the time of the first")
	}
	ns["spec"] = map[string]any{}
	if rules.PrepareDelete(ns, env) {
		t.Error("an empty namespace is not removed")
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, name string
		prefix     bool
		want       string
	}{
		{"Namespace", "a-b", false, ""},
		{"Namespace", "a.b", false, "must not contain dots"},
		{"Namespace", "a-", true, ""},
		{"Namespace", "a-", false,
			"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"},
		{"ConfigMap", "a.b", false, ""},
		{"ConfigMap", "A", false,
			"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
		{"Event", "Pod_A:1", false, ""},
		{"Event", "a/b", false, "may not contain '/'"},
		{"Event", "..", false, "may not be '..'"},
	} {
		if got := strings.Join(resource(t, c.kind).Strategy.ValidName(c.name, c.prefix), "; "); got != c.want {
			t.Errorf("%s %q: %s", c.kind, c.name, got)
		}
	}
}

func TestFieldLabels(t *testing.T) {
	t.Parallel()
	event := map[string]any{
		"involvedObject": map[string]any{
			"kind": "Pod", "name": "p", "namespace": "n", "uid": "u", "apiVersion": "v1", "resourceVersion": "5",
			"fieldPath": "spec",
		},
		"reason":             "Why",
		"type":               "Normal",
		"reportingComponent": "me",
	}
	want := map[string]string{
		"involvedObject.kind": "Pod", "involvedObject.name": "p", "involvedObject.namespace": "n",
		"involvedObject.uid":        "u",
		"involvedObject.apiVersion": "v1", "involvedObject.resourceVersion": "5", "involvedObject.fieldPath": "spec",
		"reason": "Why", "type": "Normal", "reportingComponent": "me", "source": "me",
	}
	got := map[string]string{}
	for label, f := range resource(t, "Event").Strategy.FieldLabels {
		got[label] = f(event)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	event["source"] = map[string]any{"component": "kubelet"}
	if got := resource(t, "Event").Strategy.FieldLabels["source"](event); got != "kubelet" {
		t.Errorf("source %q", got)
	}
	if got := resource(t, "Secret").Strategy.FieldLabels["type"](map[string]any{"type": "Opaque"}); got != "Opaque" {
		t.Errorf("type %q", got)
	}
	if got := resource(t,
		"Namespace").Strategy.FieldLabels["status.phase"](map[string]any{
		"status": map[string]any{"phase": "Active"},
	}); got != "Active" {
		t.Errorf("phase %q", got)
	}
}
