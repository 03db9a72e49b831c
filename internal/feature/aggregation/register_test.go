package aggregation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
)

// TestStep checks the table in autoregister_controller.go of kube-aggregator, row by row: the existing object, and the
// action if it is unwanted, wanted at the start, or always wanted.
func TestStep(t *testing.T) {
	t.Parallel()
	onStart, always := &desired{managed: managedOnStart}, &desired{managed: managedAlways}
	for _, c := range []struct {
		name            string
		have            string // its label; "-" if it does not exist
		synced, atStart bool
		want            [3]action
	}{
		{"2", "-", false, false, [3]action{nothing, create, create}},
		{"2 once", "-", true, true, [3]action{nothing, nothing, create}},
		{"3", "", false, true, [3]action{nothing, nothing, nothing}},
		{"3 another label", "yes", false, true, [3]action{nothing, nothing, nothing}},
		{"4", managedOnStart, false, false, [3]action{nothing, nothing, nothing}},
		{"5", managedOnStart, false, true, [3]action{remove, update, update}},
		{"5 once", managedOnStart, true, true, [3]action{nothing, nothing, nothing}},
		{"6", managedAlways, false, false, [3]action{remove, update, update}},
		{"6 again", managedAlways, true, false, [3]action{remove, nothing, update}},
	} {
		var have *watchcache.Entry
		if c.have != "-" {
			have = &watchcache.Entry{Labels: map[string]string{managedLabel: c.have}}
		}
		for i, want := range []*desired{nil, onStart, always} {
			if got := step(want, have, c.synced, c.atStart); got != c.want[i] {
				t.Errorf("%s, wanted %v: action %d, want %d", c.name, want, got, c.want[i])
			}
		}
	}
}

// events shows a registration everything that a resource has, as at a start.
func events(s *parttest.Server, r *registration, prefix string) (needed []string) {
	s.CatchUp()
	c := s.View.Collection(prefix)
	c.Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		r.Observe(&watchcache.Event{Entry: e, Collection: c}, func(key string) { needed = append(needed, key) })
		return true
	})
	return needed
}

func definition(group string, versions ...string) string {
	var list []string
	for i, v := range versions {
		list = append(list, fmt.Sprintf(`{"name":%q,"served":true,"storage":%t,"schema":{"openAPIV3Schema":{
			"type":"object"}}}`, v, i == 0))
	}
	return fmt.Sprintf(`{"metadata":{"name":"things.%[1]s"},"spec":{"group":%[1]q,"scope":"Namespaced",
		"names":{"plural":"things","kind":"Thing"},"versions":[%[2]s]},"status":{"storedVersions":["v1"]}}`, group, strings.Join(list, ","))
}

// spec returns the spec of the APIService of a name, or nil if there is none.
func spec(s *parttest.Server, name string) *apiregistrationv1.APIService {
	text := s.Stored(ref.APIServices.Prefix, "", name)
	if text == "" {
		return nil
	}
	service := &apiregistrationv1.APIService{}
	if err := json.Unmarshal([]byte(text), service); err != nil {
		s.Fatal(err)
	}
	return service
}

// TestRegistration checks that the APIServices of built-in kinds and of a definition are created, and users' ones are
// left alone.
func TestRegistration(t *testing.T) {
	t.Parallel()
	st := parttest.OpenStore(t, store.Config{Etcd: memory.New(), Prefix: "/registry"})
	s := parttest.Start(t, st, Part(Settings{}))
	r := newRegistration(s.Host)
	s.Create(Resource, "", `{"metadata":{"name":"v1.batch"},"spec":{"group":"batch","version":"v1",
		"groupPriorityMinimum":100,"versionPriority":7}}`)
	s.Create(Resource, "", `{"metadata":{"name":"v9.apps","labels":{"`+managedLabel+`":"`+managedOnStart+`"}},
		"spec":{"group":"apps","version":"v9","groupPriorityMinimum":100,"versionPriority":7}}`)
	events(s, r, ref.APIServices.Prefix)
	r.running.Store(true)
	if err := r.registerBuiltin(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.CatchUp()
	if spec(s, "v9.apps") != nil {
		t.Error("the APIService of an earlier start stays")
	}
	for name, want := range map[string]string{
		"v1.": "18000 1 onstart", "v1.apps": "17800 15 onstart", "v2.autoscaling": "17500 30 onstart",
		"v1.batch": "100 7 ",
	} {
		have := spec(s, name)
		if have == nil {
			t.Errorf("no APIService %s", name)
			continue
		}
		got := fmt.Sprintf("%d %d %s", have.Spec.GroupPriorityMinimum, have.Spec.VersionPriority,
			have.Labels[managedLabel])
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if c := have.Status.Conditions; len(c) != 1 || c[0].Reason != "Local" || c[0].Status != "True" ||
			c[0].Message != "Local APIServices are always available" || c[0].LastTransitionTime.IsZero() {
			t.Errorf("%s: conditions %+v", name, c)
		}
	}
	if spec(s, "v1.apiregistration.k8s.io") != nil {
		t.Error("the group of APIServices has one")
	}
	if missing := r.missing(); len(missing) > 0 {
		t.Errorf("missing %v", missing)
	}
}

// TestRegistrationOfDefinitions checks that the APIService of a definition's version is recreated after a deletion, and
// deleted with the version.
func TestRegistrationOfDefinitions(t *testing.T) {
	t.Parallel()
	st := parttest.OpenStore(t, store.Config{Etcd: memory.New(), Prefix: "/registry"})
	s := parttest.Start(t, st, Part(Settings{}))
	r := newRegistration(s.Host)
	r.running.Store(true)
	s.Create(Resource, "", `{"metadata":{"name":"v0.example.com","labels":{"`+managedLabel+`":"true"}},
		"spec":{"group":"example.com","version":"v0","groupPriorityMinimum":1000,"versionPriority":100}}`)
	events(s, r, ref.APIServices.Prefix)
	s.Create(definitions, "", definition("example.com", "v1"))
	s.CatchUp()
	written := events(s, r, control.DefinitionsPrefix)
	slices.Sort(written)
	if got := strings.Join(written, " "); got != "v0.example.com v1.example.com" {
		t.Errorf("asks about %q", got)
	}
	s.Does(r, "v0.example.com")
	if spec(s, "v0.example.com") != nil {
		t.Error("the APIService of a version that is not there stays")
	}
	for range 2 {
		s.Does(r, "v1.example.com")
		have := spec(s, "v1.example.com")
		if have == nil || have.Spec.GroupPriorityMinimum != 1000 || have.Spec.VersionPriority != 100 ||
			have.Labels[managedLabel] != managedAlways {
			t.Fatalf("%+v", have)
		}
		s.Delete(Resource, "", "v1.example.com")
	}
}

// TestRegistrationUnread checks that the APIService of a definition that may be unreadable stays.
func TestRegistrationUnread(t *testing.T) {
	t.Parallel()
	st := parttest.OpenStore(t, store.Config{Etcd: memory.New(), Prefix: "/registry"})
	const key = control.DefinitionsPrefix + "/bogus"
	rev, err := st.Create(t.Context(), key, []byte("bogus"))
	if err != nil {
		t.Fatal(err)
	}
	s := parttest.Start(t, st, Part(Settings{}))
	r := newRegistration(s.Host)
	r.running.Store(true)
	s.Create(Resource, "", `{"metadata":{"name":"v0.example.com","labels":{"`+managedLabel+`":"true"}},
		"spec":{"group":"example.com","version":"v0","groupPriorityMinimum":1000,"versionPriority":100}}`)
	events(s, r, ref.APIServices.Prefix)
	if wait := s.Does(r, "v0.example.com"); wait == 0 || spec(s, "v0.example.com") == nil {
		t.Errorf("while a definition cannot be read: waits %v, has %v", wait, spec(s, "v0.example.com"))
	}
	if _, err := st.Delete(t.Context(), key, rev); err != nil {
		t.Fatal(err)
	}
	if wait := s.Does(r, "v0.example.com"); wait != 0 || spec(s, "v0.example.com") != nil {
		t.Errorf("afterwards: waits %v, has %v", wait, spec(s, "v0.example.com"))
	}
}

var definitions = ref.CustomResourceDefinitions.GroupResource()
