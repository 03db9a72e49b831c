package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/pod-security-admission/admission/api/load"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// cases are what testdata/<plugin>.yaml says. test/oracle-builtins asks Kubernetes' plugins the same.
type cases struct {
	Configuration json.RawMessage   // of the plugin, in the user's file
	Stored        []json.RawMessage // what all cases find
	Cases         []struct {
		Name        string
		Stored      []json.RawMessage // what this one finds besides
		Operation   admit.Operation   // CREATE if empty
		Subresource string
		Object, Old json.RawMessage
		User        string   // "me" if empty
		Groups      []string // of the user
		// Want is what the plugin changes, as a merge patch; empty if nothing.
		Want json.RawMessage
		// Refused is the error's text, Causes are the types of its causes.
		Refused  string
		Causes   []metav1.CauseType
		Warnings []string
		// Notes are the annotations for the audit log, without what they all begin with.
		Notes map[string]string
	}
}

// TestPlugins asks each plugin about the writes in testdata.
func TestPlugins(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		if !slices.Contains(files, filepath.Join("testdata", name+".yaml")) {
			t.Errorf("there are no cases of %s", name)
		}
	}
	for _, file := range files {
		name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "-") // "-configured"
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var all cases
			if err := yaml.UnmarshalStrict(data, &all); err != nil {
				t.Fatal(err)
			}
			for _, c := range all.Cases {
				t.Run(c.Name, func(t *testing.T) {
					t.Parallel()
					p := start(t, name, all.Configuration,
						append(all.Stored[:len(all.Stored):len(all.Stored)], c.Stored...))
					a := attributes(t, c.Operation, c.Subresource, tree(t, c.Object), tree(t, c.Old))
					if !p.Concerns(a.Resource) {
						t.Fatal("the plugin is not about this kind")
					}
					a.User = &user.DefaultInfo{Name: cmp.Or(c.User, "me"), Groups: c.Groups}
					var warnings []string
					a.Warn = func(text string) { warnings = append(warnings, text) }
					before, old := runtime.DeepCopyJSON(a.Object), runtime.DeepCopyJSON(a.Old)
					err := p.Mutate(t.Context(), a)
					if err == nil {
						err = p.Validate(t.Context(), a)
					}
					said := ""
					if err != nil {
						said = err.Error()
					}
					if causes := causesOf(err); said != c.Refused || !slices.Equal(causes, c.Causes) {
						t.Errorf("refused: %s %q\nwant: %s %q", said, causes, c.Refused, c.Causes)
					}
					if want := merged(before, tree(t, c.Want)); err == nil && !reflect.DeepEqual(a.Object, want) {
						t.Errorf("got  %s\nwant %s", codec.AppendJSON(nil, a.Object), codec.AppendJSON(nil, want))
					}
					if !slices.Equal(warnings, c.Warnings) {
						t.Errorf("warnings %q\nwant     %q", warnings, c.Warnings)
					}
					notes := map[string]string{}
					for key, value := range a.Annotations() {
						notes[strings.TrimPrefix(key, "pod-security.kubernetes.io/")] = value
					}
					if !maps.Equal(notes, c.Notes) {
						t.Errorf("notes %q\nwant  %q", notes, c.Notes)
					}
					if !reflect.DeepEqual(a.Old, old) {
						t.Error("the old object has changed")
					}
				})
			}
		})
	}
}

// causesOf returns the types of the causes that a refusal names.
func causesOf(err error) (types []metav1.CauseType) {
	var status *apierrors.StatusError
	if errors.As(err, &status) && status.ErrStatus.Details != nil {
		for _, cause := range status.ErrStatus.Details.Causes {
			types = append(types, cause.Type)
		}
	}
	return types
}

// start returns a plugin that finds the stored objects.
func start(t *testing.T, name string, configuration json.RawMessage, stored []json.RawMessage) *Plugin {
	t.Helper()
	_, view := open(t, stored)
	security, err := load.LoadFromData(configuration)
	if err != nil {
		t.Fatal(err)
	}
	return find(t, name,
		Config{
			PodSecurity: security, View: view, Authz: authz.Basic{}, NewSuffix: func() string { return "abcde" },
			AccountPatience: time.Millisecond,
		})
}

func find(t *testing.T, name string, c Config) *Plugin {
	t.Helper()
	for _, p := range All(c) {
		if p.Name() == name {
			return p.(*Plugin)
		}
	}
	t.Fatalf("there is no plugin %s", name)
	return nil
}

// open returns a store with objects, and a view of it.
func open(t *testing.T, stored []json.RawMessage) (*store.Store, *watchcache.View) {
	t.Helper()
	s, err := store.Open(t.Context(),
		store.Config{Prefix: "/registry", Embedded: &store.Embedded{Dir: t.TempDir(), NoSync: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for _, data := range stored {
		obj := tree(t, data)
		key := resourceOf(t, obj).Prefix
		if ns := catalog.Text(obj, "metadata", "namespace"); ns != "" {
			key += "/" + ns
		}
		if _, err := s.Create(t.Context(), key+"/"+catalog.Text(obj, "metadata", "name"), data); err != nil {
			t.Fatal(err)
		}
	}
	view := watchcache.New(s, watchcache.Options{})
	if err := view.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { _ = view.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	return s, view
}

func attributes(t *testing.T, op admit.Operation, subresource string, obj, old object) *admit.Attributes {
	t.Helper()
	if op == "" {
		op = admit.Create
	}
	r := resourceOf(t, obj)
	return &admit.Attributes{
		Operation: op, Resource: r, Version: r.Storage, Subresource: subresource,
		Namespace: catalog.Text(obj, "metadata", "namespace"), Name: catalog.Text(obj, "metadata", "name"),
		Object: obj, Old: old,
	}
}

var builtins = kinds.Resources()

func resourceOf(t *testing.T, obj object) *catalog.Resource {
	t.Helper()
	kind := obj["kind"]
	if kind == "Binding" { // it comes through a subresource of pods
		kind = "Pod"
	}
	for _, r := range builtins {
		if r.Kind == kind && r.Storage != nil && r.APIVersion(r.Storage) == obj["apiVersion"] {
			return r
		}
	}
	t.Fatalf("there is no kind %s %s", obj["apiVersion"], obj["kind"])
	return nil
}

func tree(t *testing.T, data []byte) object {
	t.Helper()
	if len(data) == 0 {
		return nil
	}
	v, err := codec.DecodeJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return v.(object)
}

// merged returns obj with what a merge patch (RFC 7386) says.
func merged(obj, patch object) object {
	out := runtime.DeepCopyJSON(obj)
	if out == nil {
		out = object{}
	}
	for name, v := range patch {
		switch v := v.(type) {
		case nil:
			delete(out, name)
		case object:
			was, _ := out[name].(object)
			out[name] = merged(was, v)
		default:
			out[name] = v
		}
	}
	return out
}

// BenchmarkCustomObject is what all plugins cost a write that none of them is about.
func BenchmarkCustomObject(b *testing.B) {
	view := watchcache.New(nil, watchcache.Options{})
	chain := admit.Chain{Plugins: All(Config{View: view})}
	a := &admit.Attributes{Operation: admit.Create, Object: object{}, Resource: &catalog.Resource{
		Group: "example.com", Plural: "pods", Definition: catalog.Definition{Name: "pods.example.com"},
	}}
	b.ReportAllocs()
	for b.Loop() {
		if err := chain.Mutate(b.Context(), a); err != nil {
			b.Fatal(err)
		}
		if err := chain.Validate(b.Context(), a); err != nil {
			b.Fatal(err)
		}
	}
}
