// Package stages compares this server's handling of Stages with kwok itself: its package lifecycle, its Stages, and its
// recorded results.
package stages

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/workload/stage"
)

// now is the time of kwok's own test.
var now = time.Date(2006, 1, 2, 15, 4, 5, 0, time.UTC)

// outcome is the result of a Stage for an object, in the format of kwok's test.
type outcome struct {
	Stage  string           `json:"stage"`
	Delay  []time.Duration  `json:"delay,omitempty"`
	Weight *int64           `json:"weight,omitempty"`
	Next   []map[string]any `json:"next"`
	Failed string           `json:"failed,omitempty"`
}

// theirs returns kwok's results for an object.
func theirs(t *testing.T, stages []string, object map[string]any) (out []outcome) {
	t.Helper()
	var all []*internalversion.Stage
	for _, text := range stages {
		one := &v1alpha1.Stage{}
		if err := yaml.Unmarshal([]byte(text), one); err != nil {
			t.Fatal(err)
		}
		converted, err := internalversion.ConvertToInternalStage(one)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, converted)
	}
	life, err := lifecycle.NewLifecycle(all)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: object}
	event := &lifecycle.Event{Labels: u.GetLabels(), Annotations: u.GetAnnotations(), Data: u}
	possible, err := life.ListAllPossible(context.Background(), event)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range possible {
		one := outcome{Stage: s.Name()}
		delay, ok, err := s.DelayRangePossible(context.Background(), event, now)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			one.Delay = delay
		}
		weight, ok, err := s.Weight(context.Background(), event)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			one.Weight = &weight
		}
		theirSteps(&one, s, u)
		out = append(out, one)
	}
	return out
}

func theirSteps(one *outcome, s *lifecycle.Stage, u *unstructured.Unstructured) {
	add := func(kind string, fields map[string]any) error {
		fields["kind"] = kind
		one.Next = append(one.Next, plain(fields))
		return nil
	}
	patched := func(kind, subresource string, data []byte, as *internalversion.ImpersonationConfig) map[string]any {
		f := map[string]any{"type": kind, "data": json.RawMessage(data)}
		if subresource != "" {
			f["subresource"] = subresource
		}
		if as != nil {
			f["impersonation"] = as.Username
		}
		return f
	}
	_, err := s.DoSteps(0, u.GetFinalizers(), u, gotpl.NewRenderer(functions()),
		func(e *internalversion.StageEvent) error {
			return add("event", map[string]any{"type": e.Type, "reason": e.Reason, "message": e.Message})
		},
		func() error { return add("delete", map[string]any{}) },
		func(p *lifecycle.Patch) error {
			return add("patch", patched(string(p.Type), p.Subresource, p.Data, p.Impersonation))
		},
		func(a *lifecycle.Apply) error {
			return add("apply", patched(string(a.Type), a.Subresource, a.Data, a.Impersonation))
		})
	if err != nil {
		one.Next, one.Failed = nil, "yes"
	}
	if s.ImmediateNextStage() {
		_ = add("immediate", map[string]any{})
	}
}

// ours returns this server's results for an object.
func ours(t *testing.T, stages []string, object map[string]any) (out []outcome) {
	t.Helper()
	var life stage.Life
	for _, text := range stages {
		data, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		one, err := stage.Parse(data)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		life = append(life, one)
	}
	u := &unstructured.Unstructured{Object: object}
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	o := &stage.Object{
		Labels: u.GetLabels(), Annotations: u.GetAnnotations(), Finalizers: u.GetFinalizers(), JSON: data, Now: now,
	}
	candidates, err := life.Candidates(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range candidates {
		one := outcome{Stage: s.Name}
		from, to, ok, err := s.Delays(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			if one.Delay = []time.Duration{from, to}; from == to {
				one.Delay = one.Delay[:1]
			}
		}
		weight, ok, err := s.Stage.Weight(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			one.Weight = &weight
		}
		ourSteps(&one, s.Stage, o)
		out = append(out, one)
	}
	return out
}

func ourSteps(one *outcome, s *stage.Stage, o *stage.Object) {
	acts, err := s.Steps(o, stage.Functions(functions()))
	if err != nil {
		one.Failed = "yes"
	}
	for _, a := range acts {
		fields := map[string]any{}
		patch := a.Patch
		switch {
		case a.Event != nil:
			fields = map[string]any{
				"kind": "event", "type": a.Event.Type, "reason": a.Event.Reason, "message": a.Event.Message,
			}
		case a.Delete:
			fields["kind"] = "delete"
		case a.Apply != nil:
			fields["kind"], patch = "apply", a.Apply
		default:
			fields["kind"] = "patch"
		}
		if patch != nil {
			// kwok's test does not treat its pods as pods, and so makes other patches than a server.
			kind := string(patch.Type)
			if fields["kind"] == "patch" {
				kind = strings.Replace(kind, "strategic-merge", "merge", 1)
			}
			fields["type"], fields["data"] = kind, json.RawMessage(patch.Data)
			if patch.Subresource != "" {
				fields["subresource"] = patch.Subresource
			}
			if patch.As != nil {
				fields["impersonation"] = patch.As.Username
			}
		}
		one.Next = append(one.Next, plain(fields))
	}
	if s.Immediate() {
		one.Next = append(one.Next, map[string]any{"kind": "immediate"})
	}
}

// functions are the functions of kwok's test: they return their own call.
func functions() gotpl.FuncMap {
	all := gotpl.FuncMap{}
	call := func(name string, args []any) string {
		if len(args) == 0 {
			return name
		}
		texts := make([]string, len(args))
		for i, a := range args {
			texts[i] = fmt.Sprintf("%#v", a)
		}
		return fmt.Sprintf("%s(%s)", name, strings.Join(texts, ", "))
	}
	for _, name := range stage.Names {
		if strings.Contains(name, "IPs") {
			all[name] = func(args ...any) any {
				return []any{"<0 of " + call(name, args) + ">", "<1 of " + call(name, args) + ">"}
			}
			continue
		}
		all[name] = func(args ...any) any { return "<" + call(name, args) + ">" }
	}
	return all
}

// plain returns fields after a trip through JSON.
func plain(fields map[string]any) (out map[string]any) {
	data, err := json.Marshal(fields)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return out
}
