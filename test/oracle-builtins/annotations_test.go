package oraclebuiltins

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds"
)

// TestAnnotations compares the errors for annotations of pods and nodes that stand for fields, valid and invalid.
func TestAnnotations(t *testing.T) {
	t.Parallel()
	texts := map[string][]string{
		"Pod scheduler.alpha.kubernetes.io/tolerations": {
			`[]`, `[{"key":"a","operator":"Equal","value":"b","effect":"NoExecute","tolerationSeconds":3}]`, `x`, `{}`,
			`[{"key":3}]`, `[1]`, `[{"operator":"Equal"}]`,
			`[{"key":"a b","operator":"Exists","value":"v"},{"key":"a","effect":"Never"},{"key":"a","tolerationSeconds":3}]`, `[{"key":"a","operator":"Like"}]`, `[{"KEY":"a","Value":"-"}]`,
		},
		"Node scheduler.alpha.kubernetes.io/taints": {
			`[]`, `[{"key":"a","value":"b","effect":"NoSchedule"}]`, `x`, `{}`, `[{"effect":1}]`, `[{}]`,
			`[{"key":"a b","value":"a b","effect":"Never"},{"key":"c","effect":"NoExecute"}]`,
		},
		"Node scheduler.alpha.kubernetes.io/preferAvoidPods": {
			`{}`, `{"preferAvoidPods":[]}`, `x`, `[]`, `{"preferAvoidPods":[{}]}`,
			`{"preferAvoidPods":[{"podSignature":{"podController":{"controller":false}}}]}`,
			`{"preferAvoidPods":[{"podSignature":{"podController":{"apiVersion":"v1","kind":"RC","name":"x","controller":true}},"reason":"r"}]}`, `{"preferAvoidPods":1}`,
		},
	}
	specs := map[string]map[string]any{
		"Pod": {
			"containers": []any{
				map[string]any{
					"name": "c", "image": "i", "imagePullPolicy": "Always", "terminationMessagePolicy": "File",
				},
			},
		},
		"Node": {},
	}
	for _, r := range kinds.Resources() {
		for key, values := range texts {
			kind, name, _ := strings.Cut(key, " ")
			if kind != r.Kind {
				continue
			}
			for _, value := range values {
				meta := map[string]any{"name": "a", "annotations": map[string]any{name: value}}
				if r.Namespaced {
					meta["namespace"] = "b"
				}
				obj := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": specs[kind]}
				c := &comparison{t: t, r: r, kind: kind, object: value}
				ours, theirs, ok := c.read(obj)
				if !ok {
					t.Fatalf("%s cannot be read", kind)
				}
				s := strategies[kind]
				s.PrepareForCreate(c.ctx(""), theirs)
				got := ofAnnotations(r.Strategy.Validate(c.ctx(""), ours))
				want := ofAnnotations(s.Validate(c.ctx(""), theirs))
				if !slices.Equal(got, want) {
					t.Errorf("%s %s:\n got %q\nwant %q", key, value, got, want)
				}
			}
		}
	}
}

// ofAnnotations returns errors about annotations as texts.
func ofAnnotations(errs field.ErrorList) []string {
	var out []string
	for _, e := range errs {
		if strings.HasPrefix(e.Field, "metadata.annotations") {
			out = append(out, fmt.Sprint(e))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
