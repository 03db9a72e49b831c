package expr

import (
	"errors"
	"strings"
	"testing"

	apiservercel "k8s.io/apiserver/pkg/cel"
)

// TestSimpleExpressions checks that uncounted and counted evaluation have the same result, and that the cost never
// exceeds the charge.
func TestSimpleExpressions(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	object := map[string]any{
		"metadata": map[string]any{"name": long, "labels": map[string]any{"a": "b"}},
		"spec": map[string]any{
			"replicas": int64(3), "ratio": 1.5, "list": []any{long, "b"}, "paused": true, "nothing": nil,
		},
	}
	in := func() *Input {
		return &Input{Object: object, Request: func() map[string]any {
			return map[string]any{"operation": "CREATE", "userInfo": map[string]any{"username": "me"}}
		}}
	}
	for source, simple := range map[string]bool{
		"true":                      true,
		"object.spec.replicas <= 5": true,
		"object.spec.replicas > 3.5 || !object.spec.paused":                   true,
		"object.metadata.name == 'x'":                                         true,
		"object.metadata.name < 'y'":                                          true,
		"object.spec.ratio":                                                   true,
		"has(object.spec.replicas) ? object.spec.replicas != 4 : false":       true,
		"!has(object.spec.none) && object.spec.list.size() == 2":              true,
		"object.metadata.name in ['a', 'b']":                                  true,
		"object.metadata.labels['a'] == 'b'":                                  true,
		"object.spec.list[5] == 'b'":                                          true,
		"object.spec.none == 1":                                               true,
		"object.spec.nothing == null":                                         true,
		"oldObject == null":                                                   true,
		"request.operation == 'CREATE' && request.userInfo.username != 'you'": true,
		"object.spec.replicas < 'x'":                                          true,
		"size(object.metadata.name) > 10":                                     true,
		"object.metadata.name == object.spec.list[0]":                         false,
		"object.metadata.name.startsWith('x')":                                false,
		"object.spec.list.all(x, x == 'a')":                                   false,
		"object.metadata.name in object.spec.list":                            false,
		"object.metadata.name + 'x' == 'x'":                                   false,
		"[object.metadata.name] == [object.metadata.name]":                    false,
		"authorizer.path('/x').check('get').allowed()":                        false,
		"object.metadata.name == '" + strings.Repeat("y", 2000) + "'":         false,
	} {
		e := new(Compiler).Compile(source, Scope{Authorizer: true}, Stored, Any)
		if e.Err != nil {
			t.Errorf("%s: %v", source, e.Err)
			continue
		}
		if got := e.simple != nil; got != simple {
			t.Errorf("%.80s: simple %v, want %v", source, got, simple)
		}
		if !simple {
			continue
		}
		estimated, counted := in(), in()
		counted.Exact = true
		fast, charged, err := Run(t.Context(), []*Expression{e}, estimated, Budget)
		if err != nil {
			t.Errorf("%s: %v", source, err)
		}
		slow, left, err := Run(t.Context(), []*Expression{e}, counted, Budget)
		if err != nil {
			t.Errorf("%s: %v", source, err)
		}
		if charged > left {
			t.Errorf("%s: charged %d, costs %d", source, Budget-charged, Budget-left)
		}
		if a, b := fast[0], slow[0]; a.Err != nil && (b.Err == nil || a.Err.Error() != b.Err.Error()) || a.Err == nil &&
			(b.Err != nil || a.Value.Equal(b.Value).Value() != true) {
			t.Errorf("%s: %v, counted %v", source, fast[0], slow[0])
		}
		if !estimated.Estimated || counted.Estimated {
			t.Errorf("%s: estimated %v, %v", source, estimated.Estimated, counted.Estimated)
		}
		// With a sufficient budget an estimate must not exhaust it; with one unit less, it is exhausted.
		if _, _, err := Run(t.Context(), []*Expression{e}, in(), Budget-left); err != nil {
			t.Errorf("%s with %d units: %v", source, Budget-left, err)
		}
		if cost := Budget - left; cost > 0 {
			if _, _, err := Run(t.Context(), []*Expression{e}, in(), cost-1); !errors.Is(err,
				apiservercel.ErrOutOfBudget) {
				t.Errorf("%s with %d units: %v", source, cost-1, err)
			}
		}
	}
}
