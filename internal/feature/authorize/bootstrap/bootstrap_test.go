package bootstrap

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
)

func start(t *testing.T) (*parttest.Server, *bootstrap) {
	t.Helper()
	s := parttest.Start(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}))
	if err := control.Bootstrap(t.Context(), s.Verbs); err != nil {
		t.Fatal(err)
	}
	return s, &bootstrap{host: s.Host, policy: lines(policy)}
}

func (b *bootstrap) mustRun(t *testing.T) {
	t.Helper()
	if err := b.run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestRun checks that the first run creates the whole policy, and the second one writes nothing.
func TestRun(t *testing.T) {
	t.Parallel()
	s, b := start(t)
	b.mustRun(t)
	all, err := Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		text := s.Stored(o.resource(), o.Namespace, o.Name)
		var have Object
		if err := json.Unmarshal([]byte(text), &have); err != nil {
			t.Fatalf("%s %s: %v", o.Kind, o.Name, err)
		}
		if complete(&have, &o) || have.RoleRef != o.RoleRef {
			t.Errorf("%s %s is not what it should be: %s", o.Kind, o.Name, text)
		}
		if !b.current(o.json) {
			t.Errorf("%s %s is looked at again though nothing has changed", o.Kind, o.Name)
		}
	}
	before, err := s.View.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.mustRun(t)
	if after, err := s.View.Fresh(t.Context()); err != nil || after != before {
		t.Errorf("the second run has written: revision %d, before %d, %v", after, before, err)
	}
}

// TestReconcile changes stored objects, and runs again.
func TestReconcile(t *testing.T) {
	t.Parallel()
	s, b := start(t)
	roles := ref.ClusterRoles.GroupResource()
	bindings := ref.ClusterRoleBindings.GroupResource()
	const head = `{"apiVersion":"rbac.authorization.k8s.io/v1","metadata":`
	const ref = `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":`
	s.Create(roles, "", head+`{"name":"system:discovery","annotations":{"mine":"x"}},"rules":[
		{"nonResourceURLs":["/api","/more"],"verbs":["get"]}]}`)
	s.Create(roles, "", head+`{"name":"cluster-admin",
		"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"false"}},"rules":[]}`)
	s.Create(roles, "", head+`{"name":"view","labels":{"rbac.authorization.k8s.io/aggregate-to-edit":"no"}},
		"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"more":"yes"}}]},"rules":[]}`)
	s.Create(roles, "", head+`{"name":"system:heapster"},
		"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"more":"yes"}}]},"rules":[]}`)
	s.Create(bindings, "", head+`{"name":"system:discovery","annotations":{"mine":"y"}},`+ref+`"system:discovery"},"subjects":[
		{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"ann"}]}`)
	s.Create(bindings, "", head+`{"name":"system:basic-user"},`+ref+`"view"},"subjects":[
		{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"ann"}]}`)
	b.mustRun(t)
	for _, c := range []struct {
		collection, name string
		want, wantNot    []string
	}{
		{"clusterroles", "system:discovery", []string{
			`"mine":"x"`, `autoupdate":"true"`, `"/more"`, `{"nonResourceURLs":["/healthz"],"verbs":["get"]}`,
		}, nil},
		{"clusterroles", "cluster-admin", []string{`"rules":null`}, []string{"rbac-defaults"}},
		{"clusterroles", "view", []string{
			`"more":"yes"`, `aggregate-to-view":"true"`, `aggregate-to-edit":"no"`, `"rules":null`,
		}, nil},
		{"clusterroles", "system:heapster", []string{`"rules":[{`}, []string{`"aggregationRule"`}},
		{"clusterrolebindings", "system:discovery", []string{`"ann"`, `"system:authenticated"`}, nil},
		{"clusterrolebindings", "system:basic-user", []string{`"name":"system:basic-user"},"subjects"`}, []string{`"name":"ann"`}},
		{"clusterrolebindings", "system:public-info-viewer", []string{
			`"name":"ann"`, `"system:unauthenticated"`, "rbac-defaults", `"mine":"y"`,
		}, nil},
	} {
		text := s.Stored(c.collection, "", c.name)
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s %s has no %s: %s", c.collection, c.name, want, text)
			}
		}
		for _, not := range c.wantNot {
			if strings.Contains(text, not) {
				t.Errorf("%s %s has %s: %s", c.collection, c.name, not, text)
			}
		}
	}
}

// refusing is an admission plugin that rejects the role name until it is cleared.
type refusing struct{ name string }

func (r *refusing) Name() string { return "refusing" }

func (r *refusing) Validate(_ context.Context, a *admit.Attributes) error {
	if object.String(object.Meta(a.Object), "name") == r.name {
		return errors.New("not now")
	}
	return nil
}

// TestPart checks that an object rejected at the start is created later, and that the health check reports it until
// then.
func TestPart(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	p := &refusing{name: "system:basic-user"}
	s.Admit(p)
	var later []func(context.Context) error
	s.Background = func(f func(context.Context) error) { later = append(later, f) }
	bootstrap := Part(nil)
	if err := bootstrap.Start(t.Context(), s.Host); err != nil {
		t.Fatal(err)
	}
	check := bootstrap.Checks(s.Host)[0]
	if err := check.Run(t.Context()); err == nil || len(later) != 1 {
		t.Fatalf("%v %d", err, len(later))
	}
	if s.Stored("clusterroles", "", "view") == "" || s.Stored("clusterroles", "", "system:basic-user") != "" {
		t.Error("one that is refused keeps the others from being made, or is not refused")
	}
	p.name = ""
	if err := later[0](t.Context()); err != nil { // returns when all are stored
		t.Fatal(err)
	}
	if err := check.Run(t.Context()); err != nil || s.Stored("clusterroles", "", "system:basic-user") == "" {
		t.Error(err)
	}
}

// TestGates checks that the additions of a feature are present with the feature, and only with it.
func TestGates(t *testing.T) {
	t.Parallel()
	for _, features := range [][]string{nil, {"StorageVersionMigrator"}, {"PodCertificateRequest", "Other"}} {
		s, _ := start(t)
		if err := Part(features).Start(t.Context(), s.Host); err != nil {
			t.Fatal(err)
		}
		if _, err := s.View.Fresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		for name, feature := range map[string]string{
			"system:controller:storage-version-migrator-controller": "StorageVersionMigrator",
			"system:controller:podcertificaterequestcleaner":        "PodCertificateRequest",
		} {
			for _, kind := range []string{"clusterroles", "clusterrolebindings"} {
				e := s.View.Collection(kind).Snapshot().Get("", name)
				if wanted := slices.Contains(features, feature); (e != nil) != wanted {
					t.Errorf("%v: %s %s: %v", features, kind, name, e != nil)
				}
			}
		}
		node := s.View.Collection(ref.ClusterRoles.Prefix).Snapshot().Get("", "system:node")
		if node == nil || !strings.Contains(string(node.JSON()), `"tokenreviews"`) ||
			strings.Contains(string(node.JSON()), "podcertificaterequests") !=
				slices.Contains(features, "PodCertificateRequest") {
			t.Errorf("%v: the role of nodes is %v", features, node)
		}
	}
}
