package content

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/testserver"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	cronTabs   = schema.GroupVersionResource{Group: "stable.example.com", Version: "v1", Resource: "crontabs"}
)

// settings is the ConfigMap of manifests alone, with its namespace.
const settings = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {team: a}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {a: "1"}
`

// set is a server with manifests as the set "state".
type set struct {
	*testing.T
	server *testserver.Server
	client dynamic.Interface
}

func newSet(t *testing.T) *set {
	t.Helper()
	s := &set{T: t, server: testserver.Start(t)}
	var err error
	if s.client, err = dynamic.NewForConfig(s.server.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	if got := s.apply(s.server.RESTConfig(), manifests, importFlags{set: "state"}); got.Created != 6 {
		t.Fatalf("%+v", got)
	}
	return s
}

// apply imports a text.
func (s *set) apply(config *rest.Config, text string, flags importFlags) *importResult {
	s.Helper()
	file := filepath.Join(s.TempDir(), "all.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	flags.patience = time.Minute
	all, err := read([]string{file}, nil)
	if err != nil {
		s.Fatal(err)
	}
	result, err := all.apply(context.Background(), config, &flags)
	if err != nil {
		s.Fatal(err)
	}
	return result
}

// expect checks the outcomes of the objects that prune looked at, such as "pruned Secret shop/password".
func (s *set) expect(result *importResult, want ...string) {
	s.Helper()
	var got []string
	for i := range result.Objects {
		if one := &result.Objects[i]; one.File == "" {
			got = append(got, strings.TrimSpace(string(one.Result)+" "+one.location()+" "+one.Reason))
		}
	}
	if !slices.Equal(got, want) {
		s.Errorf("got\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const (
	retainedNamespace = "retained Namespace shop it may contain objects of others: delete it yourself"
	crd               = "CustomResourceDefinition crontabs.stable.example.com"
)

// TestPrune checks that prune deletes the objects of the set that the files do not have, definitions last, and that a
// dry run reports the same and deletes nothing.
func TestPrune(t *testing.T) {
	t.Parallel()
	s := newSet(t)
	want := []string{"pruned Secret shop/password", "pruned ClusterRole shop:reader", "pruned CronTab shop/nightly",
		"pruned " + crd}
	for range 2 {
		got := s.apply(s.server.RESTConfig(), settings, importFlags{set: "state", prune: true, dryRun: true})
		s.expect(got, want...)
	}
	got := s.apply(s.server.RESTConfig(), settings, importFlags{set: "state", prune: true})
	s.expect(got, want...)
	if got.Pruned != 4 || got.Retained != 0 || got.Unchanged != 2 || got.Failed != 0 {
		t.Errorf("%+v", got)
	}
	s.expect(s.apply(s.server.RESTConfig(), settings, importFlags{set: "state", prune: true}))
	other := strings.ReplaceAll(settings, "shop", "other")
	s.expect(s.apply(s.server.RESTConfig(), other, importFlags{set: "state", prune: true}),
		"pruned ConfigMap shop/settings", retainedNamespace)
}

// TestPruneKeeps checks the objects that prune keeps: members of another set, objects with a copied label, definitions
// with other objects.
func TestPruneKeeps(t *testing.T) {
	t.Parallel()
	s := newSet(t)
	foreign := func(r schema.GroupVersionResource, kind string) {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": r.GroupVersion().String(), "kind": kind}}
		obj.SetName("foreign")
		obj.SetLabels(map[string]string{setLabel: "state"})
		_, err := s.client.Resource(r).Namespace("shop").Create(t.Context(), obj, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	foreign(configMaps, "ConfigMap")
	foreign(cronTabs, "CronTab")
	another := strings.ReplaceAll(settings, "settings", "another")
	if got := s.apply(s.server.RESTConfig(), another, importFlags{set: "second", force: true}); got.Created != 1 {
		t.Fatalf("%+v", got)
	}
	const copied = " another client has set its label bowsprit.dev/import-set"
	flags := importFlags{set: "state", force: true, dryRun: true, prune: true}
	s.expect(s.apply(s.server.RESTConfig(), another, flags),
		"retained ConfigMap shop/foreign"+copied, "pruned ConfigMap shop/settings", "pruned Secret shop/password",
		"pruned ClusterRole shop:reader", "retained CronTab shop/foreign"+copied, "pruned CronTab shop/nightly",
		"retained "+crd+" 1 objects of its kind are not pruned")
}

// TestPruneRefuses checks that nothing is pruned if a part of the import fails, or if the caller may not list a kind.
func TestPruneRefuses(t *testing.T) {
	t.Parallel()
	s := newSet(t)
	refused := func(result *importResult, reason string) {
		t.Helper()
		s.expect(result)
		last := result.failures[len(result.failures)-1].Error()
		if !strings.HasPrefix(last, "nothing was pruned: ") || !strings.Contains(last, reason) {
			t.Errorf("%s, not for %s", last, reason)
		}
	}
	broken := settings + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: UPPER}\n"
	flags := importFlags{set: "state", prune: true}
	refused(s.apply(s.server.RESTConfig(), broken, flags), "a part of the import failed")

	admin, err := kubernetes.NewForConfig(s.server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	roles := admin.RbacV1().ClusterRoles()
	_, err = roles.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "apply"},
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"get", "patch"}, APIGroups: []string{""},
			Resources: []string{"configmaps", "namespaces"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "apply"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "apply"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "ann"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ann, err := s.server.User("ann")
	if err != nil {
		t.Fatal(err)
	}
	refused(s.apply(ann.RESTConfig(), settings, flags), "cannot list resource")
}

// TestSets checks that an object changes its set only by force, stays in it through an import without a set, and leaves
// the label behind in an export.
func TestSets(t *testing.T) {
	t.Parallel()
	s := newSet(t)
	in := func(want string) {
		t.Helper()
		obj, err := s.client.Resource(configMaps).Namespace("shop").Get(t.Context(), "settings", metav1.GetOptions{})
		if err != nil || setOf(obj) != want {
			t.Errorf("it is in the set %q, not %q: %v", setOf(obj), want, err)
		}
	}
	got := s.apply(s.server.RESTConfig(), settings, importFlags{set: "second"})
	if got.Failed != 2 || !strings.Contains(got.failures[1].Error(), `is in the set "state"; --force-conflicts moves it`) {
		t.Errorf("%+v", got)
	}
	in("state")
	if got := s.apply(s.server.RESTConfig(), settings, importFlags{}); got.Unchanged != 2 {
		t.Errorf("%+v", got)
	}
	in("state")
	if got := s.apply(s.server.RESTConfig(), settings, importFlags{set: "second", force: true}); got.Changed != 2 {
		t.Errorf("%+v", got)
	}
	in("second")
	directory := filepath.Join(t.TempDir(), "out")
	exported(t, s.server, directory, exportFlags{})
	for name, text := range filesOf(t, directory) {
		if strings.Contains(text, setLabel) {
			t.Errorf("%s has the label: %s", name, text)
		}
	}
	for _, flags := range []importFlags{{prune: true}, {set: "a/b"}, {set: strings.Repeat("a", 64), prune: true}} {
		if err := flags.check(); err == nil {
			t.Errorf("%+v is accepted", flags)
		}
	}
}

// TestPruneChanged checks that prune does not delete an object that has changed since it was found.
func TestPruneChanged(t *testing.T) {
	t.Parallel()
	s := newSet(t)
	p, err := newPruner(s.server.RESTConfig(), &importFlags{set: "state"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := p.find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(one surplus) bool { return one.obj.Name == "settings" })
	patch := []byte(`{"data":{"a":"2"}}`)
	_, err = s.client.Resource(configMaps).Namespace("shop").Patch(t.Context(), "settings", types.MergePatchType, patch,
		metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.delete(t.Context(), &all[i]); err == nil {
		t.Error("the changed object was deleted")
	}
}
