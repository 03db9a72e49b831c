package admit

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/request"
)

// part is a mutator with one part, like a webhook plugin with one webhook.
type part struct {
	name    string
	log     *[]string
	again   bool // reinvocationPolicy: IfNeeded
	set     func(n int) (key string, value any)
	refuses error
}

func (p part) Name() string { return p.name }

func (p part) Mutate(_ context.Context, a *Attributes) error {
	r := a.Reinvocation(p.name)
	r.Begin(a.Object)
	defer func() { r.End(a.Object) }()
	if r.Skip(p.name) {
		return nil
	}
	*p.log = append(*p.log, p.name)
	if p.refuses != nil {
		return p.refuses
	}
	if p.set != nil {
		n := 1
		if r.Second() {
			n = 2
		}
		key, value := p.set(n)
		if !reflect.DeepEqual(a.Object[key], value) {
			a.Object[key] = value
			a.Replace(a.Object)
			r.Changed()
		}
	}
	if p.again {
		r.Ran(p.name)
	}
	return nil
}

func (p part) Validate(context.Context, *Attributes) error {
	*p.log = append(*p.log, p.name+"!")
	return p.refuses
}

func sets(key string, value any) func(int) (string, any) {
	return func(int) (string, any) { return key, value }
}

func TestChainRounds(t *testing.T) {
	refusal := errors.New("no")
	for _, test := range []struct {
		name  string
		parts []part
		want  []string
		err   error
	}{
		{"nothing changes", []part{{name: "a", again: true}, {name: "b", again: true}}, []string{"a", "b"}, nil},
		{"a late change", []part{{name: "a", again: true}, {name: "b", set: sets("x", "1")}}, []string{"a", "b", "a"},
			nil},
		{"an early change", []part{{name: "a", again: true, set: sets("x", "1")}, {name: "b", again: true}},
			[]string{"a", "b"}, nil},
		{"never twice", []part{{name: "a"}, {name: "b", set: sets("x", "1")}}, []string{"a", "b"}, nil},
		{"a change in the second round", []part{
			{name: "a", again: true, set: func(n int) (string, any) { return "x", int64(n) }},
			{name: "b", again: true, set: sets("y", "1")},
		}, []string{"a", "b", "a", "b"}, nil},
		{"a refusal", []part{{name: "a", refuses: refusal}, {name: "b"}}, []string{"a"}, refusal},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log []string
			var chain Chain
			for _, p := range test.parts {
				p.log = &log
				chain.Plugins = append(chain.Plugins, p)
			}
			a := &Attributes{Object: Object{}}
			if err := chain.Mutate(t.Context(), a); !errors.Is(err, test.err) {
				t.Errorf("error %v, want %v", err, test.err)
			}
			if !reflect.DeepEqual(log, test.want) {
				t.Errorf("called %v, want %v", log, test.want)
			}
		})
	}
}

func TestChainValidates(t *testing.T) {
	var log []string
	refusal := errors.New("no")
	chain := Chain{
		Plugins: []Plugin{part{name: "a", log: &log}, Lifecycle{}, part{name: "b", log: &log, refuses: refusal},
			part{name: "c", log: &log}},
	}
	if err := chain.Validate(t.Context(), &Attributes{}); !errors.Is(err, refusal) {
		t.Errorf("error %v", err)
	}
	if want := []string{"a!", "b!"}; !reflect.DeepEqual(log, want) {
		t.Errorf("called %v, want %v", log, want)
	}
}

func TestAnnotationsKeepTheFirstValue(t *testing.T) {
	var a Attributes
	a.Annotate("k", "1")
	a.Annotate("k", "2")
	if got := a.Annotations(); !reflect.DeepEqual(got, map[string]string{"k": "1"}) {
		t.Errorf("annotations %v", got)
	}
}

// about is a plugin for one kind.
type about struct {
	part
	kind string
}

func (a about) Concerns(r *catalog.Resource) bool { return r.Kind == a.kind }

func TestOtherPluginsAreSkipped(t *testing.T) {
	var log []string
	chain := Chain{
		Plugins: []Plugin{about{part{name: "a", log: &log}, "Pod"}, about{part{name: "b", log: &log}, "Node"}},
	}
	a := &Attributes{Object: Object{}, Target: Target{Resource: &catalog.Resource{Kind: "Node"}}}
	if err := chain.Mutate(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if err := chain.Validate(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if want := []string{"b", "b!"}; !reflect.DeepEqual(log, want) {
		t.Errorf("called %v, want %v", log, want)
	}
}

// TestChainNamesPlugin checks that only a client that requests an explanation learns the name of the refusing plugin.
func TestChainNamesPlugin(t *testing.T) {
	t.Parallel()
	for _, explain := range []bool{false, true} {
		for _, mutates := range []bool{false, true} {
			var log []string
			scope := &request.Scope{Explain: explain}
			ctx := request.NewContext(t.Context(), scope)
			chain := Chain{Plugins: []Plugin{
				part{name: "Good", log: &log}, part{name: "Strict", log: &log, refuses: errors.New("no")},
				part{name: "Later", log: &log, refuses: errors.New("no")},
			}}
			ask := chain.Validate
			if mutates {
				ask = chain.Mutate
			}
			a := &Attributes{Object: Object{}, Target: Target{Resource: &catalog.Resource{}}}
			if err := ask(ctx, a); err == nil {
				t.Fatal("not refused")
			}
			var want []string
			if explain {
				want = []string{`299 - "refused by the admission plugin Strict"`}
			}
			if got := scope.Warnings(); !reflect.DeepEqual(got, want) {
				t.Errorf("explain %v: %q, want %q", explain, got, want)
			}
		}
	}
}
