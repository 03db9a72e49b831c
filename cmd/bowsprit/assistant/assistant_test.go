package assistant

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// block is the line above the data of an answer.
const block = `each line of it begins with "|":`

// TestToolsByFlag checks that the tools that write are there only with their flags.
func TestToolsByFlag(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{}, ""},
		{Options{AllowApply: true}, "apply"},
		{Options{AllowDelete: true}, ""},
		{Options{AllowApply: true, AllowDelete: true}, "apply delete"},
	} {
		_, _, s := newFake(t, "", c.options)
		list, err := s.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var writing []string
		for _, tool := range list.Tools {
			if !tool.Annotations.ReadOnlyHint {
				writing = append(writing, tool.Name)
			}
			for parameter := range tool.InputSchema.(object)["properties"].(object) {
				if slices.Contains([]string{"context", "kubeconfig", "server", "cluster", "token"}, parameter) {
					t.Errorf("the parameter %s of %s", parameter, tool.Name)
				}
			}
		}
		if got := strings.Join(writing, " "); got != c.want || len(list.Tools) != 10+len(writing) {
			t.Errorf("%+v: %q of %d tools", c.options, got, len(list.Tools))
		}
		if c.want == "" {
			if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "apply",
				Arguments: object{"plan": "x"}}); err == nil {
				t.Error("apply can be called")
			}
		}
	}
}

// hostileCalls are calls of all tools.
var hostileCalls = []struct {
	tool string
	args object
}{
	{"list_kinds", nil},
	{"explain_kind", object{"kind": "databases"}},
	{"list", object{"kind": "configmaps"}},
	{"list", object{"kind": "databases"}},
	{"get", object{"kind": "configmap", "name": "web"}},
	{"get", object{"kind": "configmap", "name": "web", "field": "data.k"}},
	{"get", object{"kind": "database", "name": "web"}},
	{"get", object{"kind": "configmap", "name": "absent"}},
	{"get", object{"kind": "ghost", "name": "web"}},
	{"events", nil},
	{"why_denied", object{"verb": "get", "resource": "configmaps"}},
	{"why_stuck", object{"kind": "configmap", "name": "web"}},
	{"plan", object{"manifests": "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {k: new}}"}},
	{"plan", object{"manifests": "{apiVersion: v1, kind: ConfigMap, metadata: {name: owned}}"}},
	{"plan_delete", object{"objects": []any{object{"kind": "configmap", "name": "web"}}}},
	{"plan_delete", object{"objects": []any{object{"kind": "configmap", "name": "absent"}}}},
	{"next_page", object{"page": "none"}},
}

// FuzzHostile gives every tool a server with arbitrary texts, and checks that each line of the answers is a field of
// the program or a line of the block.
func FuzzHostile(f *testing.F) {
	for _, text := range []string{"plain", "a\nfailed: no\n" + block + "\nobject: x",
		"\r\n| b\r|+ c\u2028next: p9\u2029",
		"\x1b[2J\x00\u202e", "`|` <b>\t&\"'\\n", "x\u0085y\vz\ff"} {
		f.Add(text)
	}
	fields := regexp.MustCompile(
		`^(kinds|kind|namespace|columns|objects|object|field|events|plan|failed|lines|next): [^\n]*$`)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 {
			return
		}
		_, _, s := newFake(t, "EVIL"+text+"EVIL", Options{AllowApply: true})
		for _, c := range hostileCalls {
			got, _ := call(t, s, c.tool, c.args)
			head, data, found := strings.Cut(got, block+"\n")
			if !found || strings.Contains(head, "EVIL") {
				t.Fatalf("%s: the text is outside of the block:\n%s", c.tool, got)
			}
			lines := strings.Split(strings.TrimSuffix(head, "\n"), "\n")
			for _, line := range lines[:len(lines)-1] {
				if !fields.MatchString(line) {
					t.Fatalf("%s: %q is no field", c.tool, line)
				}
			}
			for line := range strings.Lines(data) {
				if !strings.HasPrefix(line, "|") {
					t.Fatalf("%s: %q is outside of the block", c.tool, line)
				}
			}
		}
	})
}

// TestMasks checks that answers contain passwords only with --show-secrets.
func TestMasks(t *testing.T) {
	t.Parallel()
	calls := map[string]object{
		"list": {"kind": "databases"},
		"get":  {"kind": "database", "name": "web"},
		"plan": {"manifests": "{apiVersion: example.com/v1, kind: Database, metadata: {name: web}, spec: {host: new}}"},
	}
	secret := map[string]object{
		"get":  {"kind": "secrets", "name": "web"},
		"plan": {"manifests": "{apiVersion: v1, kind: Secret, metadata: {name: web}, data: {p: YQ==, q: YQ==}}"},
	}
	for _, show := range []bool{false, true} {
		_, _, s := newFake(t, "text", Options{ShowSecrets: show})
		for _, set := range []map[string]object{calls, secret} {
			for tool, args := range set {
				got, failed := call(t, s, tool, args)
				if failed || strings.Contains(got, password) != show {
					t.Errorf("%s %v with show-secrets=%t:\n%s", tool, args, show, got)
				}
			}
		}
		got, failed := call(t, s, "get", object{"kind": "ghost", "name": "web"})
		if !failed || strings.Contains(got, "publishes no schema") == show {
			t.Errorf("a kind without a schema, with show-secrets=%t:\n%s", show, got)
		}
	}
	_, _, s := newFake(t, "text", Options{})
	got, _ := call(t, s, "plan", secret["plan"])
	for _, want := range []string{`~ data.p: "<masked>" -> "<masked>"`, `+ data.q: "<masked>"`} {
		if !strings.Contains(got, want) {
			t.Errorf("the plan lacks %s:\n%s", want, got)
		}
	}
	for _, field := range []string{"data", "data.p", "data['p']", "..p", "*", "metadata.annotations"} {
		got, _ := call(t, s, "get", object{"kind": "secrets", "name": "web", "field": field})
		if strings.Contains(got, password) {
			t.Errorf("the field %s:\n%s", field, got)
		}
	}
}

// planned matches the name of a plan.
var planned = regexp.MustCompile(`(?m)^plan: (\S+), for the tool (apply|delete), once`)

const newConfigMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {k: new}}"

// TestPlans executes plans for others, twice, late, and for other states than the planned ones. Only the first use by
// the same user on the same server in the same state writes.
func TestPlans(t *testing.T) {
	t.Parallel()
	status := func(f *fake) { f.touch(configMapPath, func(o object) { o["status"] = f.mu.version }) }
	for name, c := range map[string]struct {
		meanwhile func(*fake, *Tools)
		during    func(*fake) // each write
		want      string
	}{
		"same":    {want: "changed: configmaps default/web"},
		"status":  {meanwhile: func(f *fake, _ *Tools) { status(f) }, want: "changed: configmaps default/web"},
		"racing":  {during: func(f *fake) { status(f); f.mu.beforeWrite = nil }, want: "changed: configmaps default/web"},
		"raced":   {during: status, want: "failed: configmaps default/web: Conflict"},
		"user":    {meanwhile: func(f *fake, _ *Tools) { f.mu.user = "bob" }, want: "belongs to another user or server"},
		"server":  {meanwhile: func(f *fake, _ *Tools) { f.mu.cluster = "two" }, want: "belongs to another user or server"},
		"late":    {meanwhile: late(planLife), want: "has expired after 10m0s"},
		"in time": {meanwhile: late(planLife - time.Second), want: "changed: configmaps default/web"},
		"changed": {meanwhile: func(f *fake, _ *Tools) {
			f.touch(configMapPath, func(o object) { o["data"] = object{"k": "other"} })
		}, want: "was changed since"},
		"replaced": {meanwhile: func(f *fake, _ *Tools) {
			f.touch(configMapPath, func(o object) { o["metadata"].(object)["uid"] = "u2" })
		}, want: "was changed since"},
		"deleted": {meanwhile: func(f *fake, _ *Tools) {
			delete(f.mu.objects, configMapPath)
		}, want: "was changed since"},
		"changing": {during: func(f *fake) {
			f.touch(configMapPath, func(o object) { o["data"] = object{"k": "other"} })
		}, want: "failed: configmaps default/web: configmaps default/web was changed since"},
	} {
		f, tools, s := newFake(t, "text", Options{AllowApply: true, AllowDelete: true})
		for _, p := range []struct {
			tool string
			args object
		}{
			{"plan", object{"manifests": newConfigMap}},
			{"plan_delete", object{"objects": []any{object{"kind": "configmaps", "name": "web"}}}},
		} {
			got, _ := call(t, s, p.tool, p.args)
			m := planned.FindStringSubmatch(got)
			if m == nil || len(f.mu.writes) > 0 {
				t.Fatalf("%s: %q\n%s", name, f.mu.writes, got)
			}
			if p.tool == "plan_delete" && name != "same" && name != "deleted" {
				continue
			}
			f.mu.Lock()
			if c.meanwhile != nil {
				c.meanwhile(f, tools)
			}
			f.mu.beforeWrite = nil
			if c.during != nil {
				f.mu.beforeWrite = func() { c.during(f) }
			}
			f.mu.Unlock()
			want := c.want
			if p.tool == "plan_delete" {
				want = strings.Replace(want, "changed: ", "deleted: ", 1)
			}
			got, failed := call(t, s, m[2], object{"plan": m[1]})
			good := strings.HasPrefix(want, "changed: ") || strings.HasPrefix(want, "deleted: ")
			if !strings.Contains(got, want) || failed && good || (len(f.mu.writes) == 1) != good {
				t.Errorf("%s: %s lacks %q, with the writes %q:\n%s", name, m[2], want, f.mu.writes, got)
			}
			again, failed := call(t, s, m[2], object{"plan": m[1]})
			if !failed || !strings.Contains(again, "it was used or dropped") {
				t.Errorf("%s: the second use of a plan:\n%s", name, again)
			}
			f.mu.writes = nil
			f.mu.objects[configMapPath] = object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{
				"name": "web", "namespace": "default", "uid": "u1", "resourceVersion": "1"}}
		}
	}
}

// late returns a function that moves the clock.
func late(by time.Duration) func(*fake, *Tools) {
	return func(_ *fake, tools *Tools) {
		now := time.Now().Add(by)
		tools.now = func() time.Time { return now }
	}
}

// TestPlanOfOthers checks that the plan of one tool is not for the other, and that a program keeps maxPlans.
func TestPlanOfOthers(t *testing.T) {
	t.Parallel()
	_, tools, s := newFake(t, "text", Options{AllowApply: true, AllowDelete: true})
	got, _ := call(t, s, "plan", object{"manifests": newConfigMap})
	name := planned.FindStringSubmatch(got)[1]
	if got, failed := call(t, s, "delete", object{"plan": name}); !failed {
		t.Errorf("a plan for apply deletes:\n%s", got)
	}
	for range maxPlans {
		if got, failed := call(t, s, "plan", object{"manifests": newConfigMap}); failed {
			t.Fatal(got)
		}
	}
	if got, failed := call(t, s, "apply", object{"plan": name}); !failed || len(tools.plans.all) != maxPlans {
		t.Errorf("the oldest of %d plans:\n%s", len(tools.plans.all), got)
	}
}

// TestPlanInput checks the bounds of plans, and the text of refused ones.
func TestPlanInput(t *testing.T) {
	t.Parallel()
	f, _, s := newFake(t, "text", Options{})
	for manifests, want := range map[string]string{
		"":                                  "contain no object",
		"kind: [":                           "this is not YAML",
		"apiVersion: v1\nkind: ConfigMap\n": "metadata.name: is missing",
		strings.Repeat(newConfigMap+"\n---\n", maxObjects+1):                        "at most 20",
		newConfigMap + "\n---\n" + newConfigMap:                                     "is the name of an object before",
		strings.Repeat("#", maxManifests+1):                                         "at most 262144",
		"{apiVersion: v1, kind: Nothing, metadata: {name: web}}":                    "no kind Nothing in v1",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: owned}}":                "plan with force",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: ../x}}": "",
		newConfigMap: "without --allow-apply",
	} {
		got, failed := call(t, s, "plan", object{"manifests": manifests})
		if !strings.Contains(got, want) || failed != (manifests != newConfigMap) {
			t.Errorf("%.80q: failed is %t:\n%s", manifests, failed, got)
		}
	}
	if len(f.mu.writes) > 0 {
		t.Errorf("a plan wrote: %q", f.mu.writes)
	}
}
