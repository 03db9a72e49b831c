package clusterroles_test

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/authorize/bootstrap"
	"github.com/bowsprit/bowsprit/internal/feature/authorize/escalation"
	"github.com/bowsprit/bowsprit/internal/feature/controllers/clusterroles"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
	"github.com/bowsprit/bowsprit/internal/verb"
)

var clusterRoles = ref.ClusterRoles.GroupResource()

func role(name, labels, more string) string {
	return `{"metadata":{"name":"` + name + `","labels":{` + labels + `}},` + more + `}`
}

// create creates an object as the server itself, which needs no role for it.
func create(s *parttest.Server, gr catalog.GroupResource, namespace, text string) {
	s.Helper()
	c, err := s.Verbs.Call(gr, namespace, "", verb.ServerUser())
	if err != nil {
		s.Fatal(err)
	}
	obj := object.Object{}
	if err := json.Unmarshal([]byte(text), &obj); err != nil {
		s.Fatal(err)
	}
	if obj, err = s.Verbs.New(c, obj); err == nil {
		_, err = s.Verbs.Create(s.Context(), c, obj, metav1.CreateOptions{})
	}
	if err != nil {
		s.Fatal(err)
	}
}

// TestReconcile checks that an aggregated role has the rules of the selected roles, without duplicates and its own. The
// loop's user needs the verb escalate for it.
func TestReconcile(t *testing.T) {
	t.Parallel()
	s := parttest.Start(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}), escalation.Part())
	l := clusterroles.Part().Loops[0].New(s.Host)
	needed := map[string]bool{}
	observe := func() {
		s.View.Collection(ref.ClusterRoles.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
			l.Observe(&watchcache.Event{Entry: e, Collection: s.View.Collection(ref.ClusterRoles.Prefix)},
				func(key string) { needed[key] = true })
			return true
		})
	}
	const (
		get  = `"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]`
		both = `"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]},{"verbs":["list"],"apiGroups":[""],` +
			`"resources":["pods"]}]`
	)
	create(s, clusterRoles, "", role("a", `"to-x":"true"`, get))
	create(s, clusterRoles, "", role("b", `"to-x":"true"`, both))
	create(s, clusterRoles, "", role("c", ``, `"rules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}]`))
	create(s, clusterRoles, "", role("x", `"to-x":"true"`, `"rules":[{"verbs":["old"],"apiGroups":["*"],
		"resources":["*"]}],"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"to-x":"true"}}]}`))
	observe()
	if len(needed) != 1 || !needed["x"] {
		t.Fatalf("%v", needed)
	}
	if err := l.Reconcile(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "not currently held") {
		t.Errorf("the loop has written without the right to: %v", err)
	}
	create(s, clusterRoles, "", role("controller", ``, `"rules":[{"verbs":["escalate"],
		"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"]}]`))
	create(s, ref.ClusterRoleBindings.GroupResource(), "",
		`{"metadata":{"name":"controller"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole",
		"name":"controller"},"subjects":[{"kind":"ServiceAccount","namespace":"kube-system",
		"name":"clusterrole-aggregation-controller"}]}`)
	if err := l.Reconcile(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	text := s.Stored("clusterroles", "", "x")
	want := `"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]},{"apiGroups":[""],"resources":["pods"],` +
		`"verbs":["list"]}]`
	if !strings.Contains(text, want) || !strings.Contains(text, `"manager":"clusterrole-aggregation-controller"`) {
		t.Error(text)
	}
	if err := l.Reconcile(t.Context(), "x"); err != nil || s.Stored("clusterroles", "", "x") != text {
		t.Errorf("a second look has written, or %v", err)
	}
}

// TestStart checks that the default roles have the rules of the roles that they select before any controller runs, and
// that a second start writes nothing.
func TestStart(t *testing.T) {
	t.Parallel()
	s := parttest.Start(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}), escalation.Part())
	start := func() {
		t.Helper()
		for _, p := range []part.Part{bootstrap.Part(nil), clusterroles.Part()} {
			if err := p.Start(t.Context(), s.Host); err != nil {
				t.Fatal(err)
			}
		}
	}
	start()
	texts := map[string]string{}
	for _, name := range []string{"view", "edit", "admin"} {
		texts[name] = s.Stored("clusterroles", "", name)
		if !strings.Contains(texts[name], `"configmaps"`) {
			t.Errorf("%s has no rule for ConfigMaps: %s", name, texts[name])
		}
	}
	if !strings.Contains(texts["admin"], `"rolebindings"`) || strings.Contains(texts["edit"], `"rolebindings"`) {
		t.Errorf("admin: %s; edit: %s", texts["admin"], texts["edit"])
	}
	start()
	for name, text := range texts {
		if now := s.Stored("clusterroles", "", name); now != text {
			t.Errorf("a second start has changed %s from %s to %s", name, text, now)
		}
	}
}
