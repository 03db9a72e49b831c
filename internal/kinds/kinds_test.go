package kinds_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func TestKinds(t *testing.T) {
	t.Parallel()
	cat := catalog.New(kinds.Resources()...)
	for _, c := range []struct {
		group, plural, kind, prefix string
		short                       []string
		namespaced, status          bool
	}{
		{"", "namespaces", "Namespace", "namespaces", []string{"ns"}, false, true},
		{"", "configmaps", "ConfigMap", "configmaps", []string{"cm"}, true, false},
		{"", "secrets", "Secret", "secrets", nil, true, false},
		{"", "events", "Event", "events", []string{"ev"}, true, false},
		{"", "serviceaccounts", "ServiceAccount", "serviceaccounts", []string{"sa"}, true, false},
		{"coordination.k8s.io", "leases", "Lease", "leases", nil, true, false},
		{"apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition",
			"apiextensions.k8s.io/customresourcedefinitions", []string{"crd", "crds"}, false, true},
	} {
		r, v := cat.Snapshot().Served(c.group, "v1", c.plural)
		if r == nil {
			t.Errorf("%s is not served", c.plural)
			continue
		}
		if r.Kind != c.kind || r.ListKind != c.kind+"List" || r.Singular != strings.ToLower(c.kind) {
			t.Errorf("%s: names %s %s %s", c.plural, r.Kind, r.ListKind, r.Singular)
		}
		if r.Prefix != c.prefix || r.Namespaced != c.namespaced || v.Status != c.status ||
			!slices.Equal(r.ShortNames, c.short) {
			t.Errorf("%s: prefix %q, namespaced %t, status %t, short %q", c.plural, r.Prefix, r.Namespaced, v.Status,
				r.ShortNames)
		}
		if name := reflect.TypeOf(v.New()).Elem().Name(); name != c.kind {
			t.Errorf("%s: Go type %s", c.plural, name)
		}
		if cells := r.Strategy.Cells(map[string]any{}, catalog.Env{Now: now}); len(cells) != len(v.Columns) {
			t.Errorf("%s: %d cells in %d columns", c.plural, len(cells), len(v.Columns))
		}
	}
	if r, _ := cat.Snapshot().Served("", "v1", "namespaces"); r.Answers("deletecollection") || !r.Answers("delete") {
		t.Errorf("namespaces answer %v", r.Verbs)
	}
}

// TestSchemasStandAlone checks that every expanded schema has no references, and empty metadata.
func TestSchemasStandAlone(t *testing.T) {
	t.Parallel()
	for _, r := range kinds.Resources() {
		for _, v := range r.Versions {
			s, err := v.Source()
			if err != nil {
				t.Errorf("%s: %v", r.Kind, err)
				continue
			}
			data, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(data, []byte("$ref")) {
				t.Errorf("%s: a reference is left", r.Kind)
			}
			if meta := s.Properties["metadata"]; meta.Type != "object" || len(meta.Properties) > 0 {
				t.Errorf("%s: metadata %+v", r.Kind, meta)
			}
			again, _ := v.Source()
			if !reflect.DeepEqual(s, again) {
				t.Errorf("%s: expanding changes what is expanded", r.Kind)
			}
		}
	}
}

// TestListTypes lists the lists and maps with a type that determines field ownership.
func TestListTypes(t *testing.T) {
	t.Parallel()
	at := func(kind string, path ...string) apiextensionsv1.JSONSchemaProps {
		s, err := resource(t, kind).Storage.Source()
		if err != nil {
			t.Fatal(err)
		}
		out := *s
		for _, p := range path {
			out = out.Properties[p]
		}
		return out
	}
	deref := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	if s := at("ServiceAccount", "secrets"); deref(s.XListType) != "map" ||
		!slices.Equal(s.XListMapKeys, []string{"name"}) {
		t.Errorf("secrets: %v %v", deref(s.XListType), s.XListMapKeys)
	}
	if s := at("ServiceAccount", "imagePullSecrets"); deref(s.XListType) != "atomic" ||
		deref(s.Items.Schema.XMapType) != "atomic" {
		t.Errorf("imagePullSecrets: %v of %v", deref(s.XListType), deref(s.Items.Schema.XMapType))
	}
	if s := at("Event", "involvedObject"); deref(s.XMapType) != "atomic" {
		t.Errorf("involvedObject: %v", deref(s.XMapType))
	}
	if s := at("Namespace", "status", "conditions"); deref(s.XListType) != "map" ||
		!slices.Equal(s.XListMapKeys, []string{"type"}) {
		t.Errorf("conditions: %v %v", deref(s.XListType), s.XListMapKeys)
	}
	if s := at("CustomResourceDefinition", "spec", "versions"); deref(s.XListType) != "atomic" {
		t.Errorf("versions: %v", deref(s.XListType))
	}
}

func resource(t testing.TB, kind string) *catalog.Resource {
	t.Helper()
	for _, r := range kinds.Resources() {
		if r.Kind == kind {
			return r
		}
	}
	t.Fatalf("no kind %s", kind)
	return nil
}

func TestKeepEvents(t *testing.T) {
	t.Parallel()
	resources := kinds.Resources()
	kinds.KeepEvents(resources, 2*time.Hour)
	kept := 0
	for _, r := range resources {
		switch ttl := r.Strategy.TTL; {
		case r.Plural == "events" && ttl == 2*time.Hour:
			kept++
		case ttl != 0:
			t.Errorf("%s live for %s", r.Qualified(), ttl)
		}
	}
	if kept != 2 {
		t.Errorf("%d kinds of events of two", kept)
	}
}

// TestMinimal creates a catalog of only the kinds that a server needs.
func TestMinimal(t *testing.T) {
	t.Parallel()
	var names []string
	for _, r := range kinds.Minimal() {
		names = append(names, r.Qualified())
	}
	if want := []string{"namespaces", "customresourcedefinitions.apiextensions.k8s.io"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
	cat := catalog.New(kinds.Minimal()...)
	for _, c := range []struct {
		group, plural string
		served        bool
	}{{"", "namespaces", true}, {"apiextensions.k8s.io", "customresourcedefinitions", true}, {"", "pods", false}} {
		if r, _ := cat.Snapshot().Served(c.group, "v1", c.plural); (r != nil) != c.served {
			t.Errorf("%s is served: %t", c.plural, r != nil)
		}
	}
}
