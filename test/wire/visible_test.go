package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

// viewer is a client that lists and watches the objects visible to one user.
type viewer struct {
	*testing.T
	http *http.Client
	url  string
}

// seen is an object as a list or watch shows it.
type seen struct {
	Metadata struct{ Namespace, Name, ResourceVersion string }
}

func (s seen) key() string { return s.Metadata.Namespace + "/" + s.Metadata.Name }

// page is a list.
type page struct {
	Metadata struct {
		ResourceVersion, Continue string
		RemainingItemCount        *int64
	}
	Items []seen
}

// event is one of a watch.
type event struct {
	Type   string
	Object seen
}

// startVisible starts a server with namespaces, and returns the administrator and mona, who may list and watch the
// secrets of the namespace "home".
func startVisible(t *testing.T, namespaces ...string) (admin, mona viewer) {
	t.Helper()
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(tokens, []byte("mona,mona,1,\"group\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := testserver.Start(t, func(c *bowsprit.Config) { c.Authentication.TokenAuthFile = tokens })
	config := server.RESTConfig()
	admin = viewer{T: t, http: client(t, config), url: server.URL()}
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = "mona"
	mona = viewer{T: t, http: client(t, config), url: server.URL()}
	for _, name := range append(namespaces, "home") {
		admin.do("POST", "/api/v1/namespaces", `{"metadata":{"name":%q}}`, name)
	}
	admin.do("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
		`{"metadata":{"name":"watcher"},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["list","watch"]}]}`)
	admin.bind("home", "watcher")
	return admin, mona
}

func client(t *testing.T, config *rest.Config) *http.Client {
	t.Helper()
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// try sends a request and returns the status and the body.
func (v viewer) try(method, path, body string) (int, []byte) {
	v.Helper()
	r, err := http.NewRequestWithContext(v.Context(), method, v.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		v.Fatal(err)
	}
	if r.Header.Set("Content-Type", "application/json"); method == "PATCH" {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answer, err := v.http.Do(r)
	if err != nil {
		v.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		v.Fatal(err)
	}
	return answer.StatusCode, raw
}

// do sends a request that must succeed.
func (v viewer) do(method, path, body string, arguments ...any) []byte {
	v.Helper()
	code, answer := v.try(method, path, fmt.Sprintf(body, arguments...))
	if code >= 300 {
		v.Fatalf("%s %s: %d %s", method, path, code, answer)
	}
	return answer
}

func (v viewer) bind(namespace, role string) {
	v.Helper()
	v.do("POST", bindings(namespace), `{"metadata":{"name":%q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",`+
		`"kind":"ClusterRole","name":%[1]q},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User",`+
		`"name":"mona"}]}`, role)
}

func bindings(namespace string) string {
	return "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace + "/rolebindings"
}

func secrets(namespace string) string { return "/api/v1/namespaces/" + namespace + "/secrets" }

// create makes a secret and returns its resourceVersion.
func (v viewer) create(namespace, name string) string {
	v.Helper()
	var made seen
	if err := json.Unmarshal(v.do("POST", secrets(namespace), `{"metadata":{"name":%q}}`, name), &made); err != nil {
		v.Fatal(err)
	}
	return made.Metadata.ResourceVersion
}

// list returns the visible objects.
func (v viewer) list(query string) page {
	v.Helper()
	var p page
	if err := json.Unmarshal(v.do("GET", "/api/v1/secrets?visible=true"+query, ""), &p); err != nil {
		v.Fatal(err)
	}
	return p
}

// watch follows the visible objects after a revision, with bookmarks.
func (v viewer) watch(revision, query string) *json.Decoder {
	v.Helper()
	target := v.url + "/api/v1/secrets?visible=true&watch=true&allowWatchBookmarks=true&resourceVersion=" +
		url.QueryEscape(revision) + query
	r, err := http.NewRequestWithContext(v.Context(), http.MethodGet, target, nil)
	if err != nil {
		v.Fatal(err)
	}
	answer, err := v.http.Do(r)
	if err != nil {
		v.Fatal(err)
	}
	v.Cleanup(func() { answer.Body.Close() })
	if answer.StatusCode != http.StatusOK {
		v.Fatalf("watch: %s", answer.Status)
	}
	return json.NewDecoder(answer.Body)
}

func (v viewer) next(d *json.Decoder) event {
	v.Helper()
	var e event
	if err := d.Decode(&e); err != nil {
		v.Fatal(err)
	}
	return e
}

// expect reads one event and compares it. It skips unexpected bookmarks: a bookmark follows changes that come together.
func (v viewer) expect(d *json.Decoder, kind, key, revision string) {
	v.Helper()
	e := v.next(d)
	for e.Type == "BOOKMARK" && kind != "BOOKMARK" {
		e = v.next(d)
	}
	if e.Type != kind || e.Object.key() != key || revision != "" && e.Object.Metadata.ResourceVersion != revision {
		v.Fatalf("event %+v, want %s %s at %s", e, kind, key, revision)
	}
}

// number is the resourceVersion of an event.
func number(t *testing.T, e event) int64 {
	t.Helper()
	n, err := strconv.ParseInt(e.Object.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestVisible lists and watches one user's visible objects while roles are granted and removed.
func TestVisible(t *testing.T) {
	t.Parallel()
	admin, mona := startVisible(t, "other", "third")
	admin.create("home", "a")
	inOther := admin.create("other", "b")
	admin.create("other", "c")

	if code, _ := mona.try("GET", "/api/v1/secrets", ""); code != http.StatusForbidden {
		t.Errorf("a list that does not ask for what is visible: status %d", code)
	}
	start := mona.list("&limit=5")
	if len(start.Items) != 1 || start.Items[0].key() != "home/a" || start.Metadata.Continue != "" {
		t.Errorf("visible: %+v", start)
	}
	if code, _ := mona.try("GET", "/api/v1/secrets/a?visible=true", ""); code == http.StatusOK {
		t.Error("a get is not a list")
	}

	events := mona.watch(start.Metadata.ResourceVersion, "")
	// A grant of one name.
	admin.do("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", `{"metadata":{"name":"named"},"rules":[`+
		`{"apiGroups":[""],"resources":["secrets"],"verbs":["list","watch"],"resourceNames":["b"]}]}`)
	admin.bind("other", "named")
	mona.expect(events, "ADDED", "other/b", inOther)
	mona.expect(events, "BOOKMARK", "/", "")
	// The grant covers one name: other objects stay hidden, and this object becomes visible.
	admin.do("PATCH", secrets("other")+"/c", `{"metadata":{"labels":{"x":"y"}}}`)
	admin.do("PATCH", secrets("other")+"/b", `{"metadata":{"labels":{"x":"y"}}}`)
	mona.expect(events, "MODIFIED", "other/b", "")
	// A role that changes: c comes into sight, b stays.
	admin.do("PATCH", "/apis/rbac.authorization.k8s.io/v1/clusterroles/named",
		`{"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["*"],"resourceNames":["b","c"]}]}`)
	mona.expect(events, "ADDED", "other/c", "")
	seenLast := mona.next(events) // a bookmark
	// A removal deletes the object from the view at the revision of the removal.
	admin.do("DELETE", bindings("other")+"/named", "")
	first := mona.next(events)
	if first.Type != "DELETED" || number(t, first) <= number(t, seenLast) {
		t.Errorf("after the removal: %+v", first)
	}
	mona.expect(events, "DELETED", "other/c", first.Object.Metadata.ResourceVersion)
	mona.expect(events, "BOOKMARK", "/", first.Object.Metadata.ResourceVersion)
	// The watch shows no more changes of it.
	admin.do("PATCH", secrets("other")+"/b", `{"metadata":{"labels":{"x":"z"}}}`)
	admin.create("home", "d")
	mona.expect(events, "ADDED", "home/d", "")

	// A client that resumes before the grant does not see the object, because the grant was removed.
	again := mona.watch(start.Metadata.ResourceVersion, "")
	mona.expect(again, "ADDED", "home/d", "")
	// A client that resumes during the grant loses the objects at once.
	again = mona.watch(seenLast.Object.Metadata.ResourceVersion, "")
	mona.expect(again, "DELETED", "other/b", seenLast.Object.Metadata.ResourceVersion)
	mona.expect(again, "DELETED", "other/c", seenLast.Object.Metadata.ResourceVersion)
	mona.expect(again, "ADDED", "home/d", "")

	// A user with a cluster-wide role sees all objects, and loses them with the role.
	everything := len(admin.list("").Items)
	admin.do("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", `{"metadata":{"name":"all"},"roleRef":`+
		`{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"watcher"},"subjects":[`+
		`{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"group"}]}`)
	if got := len(mona.list("").Items); got != everything {
		t.Errorf("mona sees %d of %d secrets", got, everything)
	}
	admin.do("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/all", "")
	if got := len(mona.list("").Items); got != 2 {
		t.Errorf("mona sees %d secrets, want 2", got)
	}
}

// TestVisibleAtRandom changes secrets and roles at random. The events of a watch must add up to a list, for a
// continuous watch and for a resumed one.
func TestVisibleAtRandom(t *testing.T) {
	t.Parallel()
	namespaces := []string{"n0", "n1", "n2"}
	admin, mona := startVisible(t, namespaces...)
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	admin.do("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", `{"metadata":{"name":"named"},"rules":[]}`)
	start := mona.list("")
	events := mona.watch(start.Metadata.ResourceVersion, "")
	state := map[string]string{}
	for _, s := range start.Items {
		state[s.key()] = s.Metadata.ResourceVersion
	}
	steps := 300
	if n, err := strconv.Atoi(os.Getenv("WIRE_STEPS")); err == nil {
		steps = n
	}
	for step := range steps {
		change(admin, random, namespaces)
		if step%20 != 19 {
			continue
		}
		fence := fmt.Sprintf("fence-%d", step)
		admin.create("home", fence)
		for state["home/"+fence] == "" {
			mona.apply(state, mona.next(events))
		}
		resumed := map[string]string{}
		for _, s := range start.Items {
			resumed[s.key()] = s.Metadata.ResourceVersion
		}
		for again := mona.watch(start.Metadata.ResourceVersion, ""); resumed["home/"+fence] == ""; {
			mona.apply(resumed, mona.next(again))
		}
		want := map[string]string{}
		start = mona.list("")
		for _, s := range start.Items {
			want[s.key()] = s.Metadata.ResourceVersion
		}
		if !maps.Equal(state, want) || !maps.Equal(resumed, want) {
			t.Fatalf("step %d: the watch says %v, the one that resumed %v, the list %v", step, state, resumed, want)
		}
	}
}

// apply applies an event to a client's state.
func (v viewer) apply(state map[string]string, e event) {
	v.Helper()
	switch e.Type {
	case "ADDED", "MODIFIED":
		state[e.Object.key()] = e.Object.Metadata.ResourceVersion
	case "DELETED":
		if _, ok := state[e.Object.key()]; !ok {
			v.Errorf("%s is deleted that was not there", e.Object.key())
		}
		delete(state, e.Object.key())
	case "BOOKMARK":
	default:
		v.Fatalf("event %+v", e)
	}
}

// change makes one change. It may fail, because its object exists already, or does not exist.
func change(admin viewer, random *rand.Rand, namespaces []string) {
	namespace := namespaces[random.IntN(len(namespaces))]
	name := string(rune('a' + random.IntN(4)))
	switch random.IntN(10) {
	case 0, 1:
		admin.try("POST", secrets(namespace), fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
	case 2, 3:
		admin.try("PATCH", secrets(namespace)+"/"+name, fmt.Sprintf(`{"metadata":{"labels":{"x":"%d"}}}`, random.Int()))
	case 4:
		admin.try("DELETE", secrets(namespace)+"/"+name, "")
	case 5, 6:
		role := []string{"watcher", "named"}[random.IntN(2)]
		admin.try("POST", bindings(namespace), fmt.Sprintf(`{"metadata":{"name":%q},"roleRef":{"apiGroup":`+
			`"rbac.authorization.k8s.io","kind":"ClusterRole","name":%[1]q},"subjects":[{"apiGroup":`+
			`"rbac.authorization.k8s.io","kind":"Group","name":"group"}]}`, role))
	case 7, 8:
		role := []string{"watcher", "named"}[random.IntN(2)]
		admin.try("DELETE", bindings(namespace)+"/"+role, "")
	case 9:
		admin.try("PATCH", "/apis/rbac.authorization.k8s.io/v1/clusterroles/named", fmt.Sprintf(`{"rules":[{"apiGroups":`+
			`[""],"resources":["secrets"],"verbs":["list","watch"],"resourceNames":[%q]}]}`, name))
	}
}
