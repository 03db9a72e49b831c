// Package plugintest runs admission plugins on the writes in testdata.
package plugintest

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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/pod-security-admission/admission/api/load"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/feature/plugins"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Cases are the content of testdata/<plugin>.yaml. test/oracle-builtins runs the same on Kubernetes' plugins.
type Cases struct {
	Configuration json.RawMessage   // of the plugin, in the user's file
	Gates         []string          // enabled feature gates
	Stored        []json.RawMessage // stored objects for all cases
	Cases         []Write
}

// Write is a case.
type Write struct {
	Name        string
	Stored      []json.RawMessage // additional stored objects of this one
	Operation   admit.Operation   // CREATE if empty
	Subresource string
	Object, Old json.RawMessage
	User        string   // "me" if empty
	Groups      []string // of the user
	// Want is the change of the plugin, as a merge patch; empty if there is none.
	Want json.RawMessage
	// Refused is the error's text, Causes are the types of its causes.
	Refused  string
	Causes   []metav1.CauseType
	Warnings []string
	// Notes are the audit annotations, without their common prefix.
	Notes map[string]string
}

// Run runs each plugin that has a file of testdata on the writes in it.
func Run(t *testing.T) {
	t.Parallel()
	Each(t, "testdata/*.yaml", func(t *testing.T, name string, all *Cases, c *Write) {
		t.Helper()
		c.check(t, start(t, name, all, slices.Concat(all.Stored, c.Stored)))
	})
}

// Each runs a test of each case in the matching files, with the name of the plugin. It returns the number of files.
func Each(t *testing.T, match string, check func(t *testing.T, plugin string, all *Cases, c *Write)) int {
	t.Helper()
	files, err := filepath.Glob(match)
	if err != nil || len(files) == 0 {
		t.Fatal("there are no cases", err)
	}
	for _, file := range files {
		name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "-") // "-configured"
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var all Cases
			if err := yaml.UnmarshalStrict(data, &all); err != nil {
				t.Fatal(err)
			}
			for i := range all.Cases {
				t.Run(all.Cases[i].Name, func(t *testing.T) {
					t.Parallel()
					check(t, name, &all, &all.Cases[i])
				})
			}
		})
	}
	return len(files)
}

// check runs the plugin on the write.
func (c *Write) check(t *testing.T, p *plugin.Plugin) {
	t.Helper()
	a := Attributes(t, c.Operation, c.Subresource, Tree(t, c.Object), Tree(t, c.Old))
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
	text := ""
	if err != nil {
		text = err.Error()
	}
	if causes := causesOf(err); text != c.Refused || !slices.Equal(causes, c.Causes) {
		t.Errorf("refused: %s %q\nwant: %s %q", text, causes, c.Refused, c.Causes)
	}
	if want := merged(before, Tree(t, c.Want)); err == nil && a.Object != nil &&
		!reflect.DeepEqual(a.Object, want) {
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
	if err == nil && before != nil && c.Subresource == "" {
		c.checkForm(t, p, before, old)
	}
}

// checkForm runs the plugin on a decoded object: the changed object must have decoded form as well, because the server
// does not decode it again (Attributes.Edit).
func (c *Write) checkForm(t *testing.T, p *plugin.Plugin, obj, old admit.Object) {
	t.Helper()
	a := Attributes(t, c.Operation, c.Subresource, obj, old)
	rules := a.Resource.StrategyFor(a.Version)
	if _, err := rules.Decode(obj); err != nil {
		t.Fatal(err)
	}
	a.User, a.Warn = &user.DefaultInfo{Name: cmp.Or(c.User, "me"), Groups: c.Groups}, func(string) {}
	if err := p.Mutate(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	decoded := runtime.DeepCopyJSON(a.Object)
	if _, err := rules.Decode(decoded); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a.Object, decoded) {
		t.Errorf("the plugin leaves  %s\nwhich is decoded as %s", codec.AppendJSON(nil, a.Object),
			codec.AppendJSON(nil, decoded))
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
func start(t *testing.T, name string, all *Cases, stored []json.RawMessage) *plugin.Plugin {
	t.Helper()
	_, view := Open(t, stored)
	security, err := load.LoadFromData(all.Configuration)
	if err != nil {
		t.Fatal(err)
	}
	features := map[string]bool{}
	for _, gate := range all.Gates {
		features[gate] = true
	}
	return Find(t, name,
		plugin.Config{
			Features:    features,
			PodSecurity: security, View: view, Authz: authz.Union{}, NewSuffix: func() string { return "abcde" },
			AccountPatience: time.Millisecond,
		})
}

// Find returns the plugin of a name.
func Find(t *testing.T, name string, c plugin.Config) *plugin.Plugin {
	t.Helper()
	for _, p := range plugins.All(c) {
		if p.Name() == name {
			return p.(*plugin.Plugin)
		}
	}
	t.Fatalf("there is no plugin %s", name)
	return nil
}

// Open returns a store with objects, and a view of it.
func Open(t *testing.T, stored []json.RawMessage) (*store.Store, *watchcache.View) {
	t.Helper()
	s, err := store.Open(t.Context(),
		store.Config{Prefix: "/registry", Etcd: memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for _, data := range stored {
		obj := Tree(t, data)
		r, _ := resourceOf(t, obj)
		key := r.Prefix
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

// Attributes describes a write of an object of a built-in kind.
func Attributes(t *testing.T, op admit.Operation, subresource string, obj, old admit.Object) *admit.Attributes {
	t.Helper()
	if op == "" {
		op = admit.Create
	}
	named := obj
	if obj == nil { // a deletion
		named = old
	}
	r, version := resourceOf(t, named)
	return &admit.Attributes{
		Operation: op,
		Target: admit.Target{
			Resource: r, Version: version, Subresource: subresource,
			Namespace: catalog.Text(named, "metadata", "namespace"), Name: catalog.Text(named, "metadata", "name"),
		},
		Object: obj, Old: old,
	}
}

var builtins = kinds.Resources()

// resourceOf returns the resource and the version of an object.
func resourceOf(t *testing.T, obj admit.Object) (*catalog.Resource, *catalog.Version) {
	t.Helper()
	kind, version := obj["kind"], obj["apiVersion"]
	switch kind { // kinds of subresources
	case "Binding", "Eviction":
		kind, version = "Pod", "v1"
	case "TokenRequest":
		kind, version = "ServiceAccount", "v1"
	}
	for _, r := range builtins {
		for _, v := range r.Versions {
			if r.Kind == kind && r.APIVersion(v) == version {
				return r, v
			}
		}
	}
	t.Fatalf("there is no kind %s %s", obj["apiVersion"], obj["kind"])
	return nil, nil
}

// Tree decodes JSON; nil if there is none.
func Tree(t *testing.T, data []byte) admit.Object {
	t.Helper()
	if len(data) == 0 {
		return nil
	}
	v, err := codec.DecodeJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return v.(admit.Object)
}

// merged returns obj with a merge patch (RFC 7386) applied.
func merged(obj, patch admit.Object) admit.Object {
	out := runtime.DeepCopyJSON(obj)
	if out == nil {
		out = admit.Object{}
	}
	for name, v := range patch {
		switch v := v.(type) {
		case nil:
			delete(out, name)
		case admit.Object:
			was, _ := out[name].(admit.Object)
			out[name] = merged(was, v)
		default:
			out[name] = v
		}
	}
	return out
}
