package wire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// history is a naive model of secrets and grants: a copy of all state for each revision with a write.
type history struct{ states []state }

// state is the secrets and the grants from one revision on.
type state struct {
	revision int64
	secrets  map[string]secret // by namespace/name
	grants   map[string]grant  // by the namespace and the name of the binding
	named    string            // the only name that the role "named" covers
}

type secret struct {
	value string // unique among all writes
	label string
}

// grant is a binding: the role, and its group.
type grant struct{ namespace, role, group string }

// member is a caller: mona with some groups.
type member []string

// mayRead is the rule of RBAC for the model's roles.
func (s *state) mayRead(m member, key string) bool {
	namespace, name, _ := strings.Cut(key, "/")
	for _, g := range s.grants {
		if g.namespace == namespace && slices.Contains(m, g.group) && (g.role == "watcher" || name == s.named) {
			return true
		}
	}
	return namespace == "home"
}

func (h *history) now() *state { return &h.states[len(h.states)-1] }

// at returns the state at a revision.
func (h *history) at(revision int64) *state {
	for i := range slices.Backward(h.states) {
		if h.states[i].revision <= revision {
			return &h.states[i]
		}
	}
	return &h.states[0]
}

// mayHaveRead reports whether a caller may read the object now, and could read it while it had this value.
func (h *history) mayHaveRead(m member, key, value string) bool {
	if !h.now().mayRead(m, key) {
		return false
	}
	for i := range h.states {
		if s := &h.states[i]; s.secrets[key].value == value && s.mayRead(m, key) {
			return true
		}
	}
	return false
}

// visible returns the values that a caller sees in a state, of the objects that now shows too.
func (s *state) visible(m member, now *state, label string) map[string]string {
	out := map[string]string{}
	for key, one := range s.secrets {
		if s.mayRead(m, key) && now.mayRead(m, key) && (label == "" || one.label == label) {
			out[key] = one.value
		}
	}
	return out
}

// content is a secret as a client sees it.
type content struct {
	Metadata struct {
		Namespace, Name, ResourceVersion, Continue, UID string
		Labels, Annotations                             map[string]string
		ManagedFields                                   []any
	}
	Code  int
	Data  map[string]string
	Items []content
}

func (c *content) key() string { return c.Metadata.Namespace + "/" + c.Metadata.Name }

func (c *content) value() string {
	raw, _ := base64.StdEncoding.DecodeString(c.Data["v"])
	return string(raw)
}

// revoked plays random writes of secrets and grants, and compares with the model every kind of read that shows history.
type revoked struct {
	viewer  // the administrator
	random  *rand.Rand
	history history
	tokens  []token
	writes  int
	values  int
}

// token continues a list, which its caller began at a revision.
type token struct {
	member   member
	revision int64
	text     string
}

// TestVisibleHistory lets callers of changing groups read history with visible=true: watches from every past revision,
// lists at exact revisions, and pages of a list that began under other grants. A response must contain no object that
// its caller may not read today, or could not read at the time. A resumed watch must end with the state of a list.
func TestVisibleHistory(t *testing.T) {
	t.Parallel()
	admin, _ := startVisible(t, "n0", "n1")
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := &revoked{viewer: admin, random: rand.New(rand.NewPCG(seed, 0))}
	admin.do("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", `{"metadata":{"name":"named"},"rules":[]}`)
	first := admin.list("")
	revision, _ := strconv.ParseInt(first.Metadata.ResourceVersion, 10, 64)
	r.history.states = []state{{revision: revision}}
	steps := 60
	if n, err := strconv.Atoi(os.Getenv("WIRE_STEPS")); err == nil {
		steps = n
	}
	for range steps {
		for range 1 + r.random.IntN(4) {
			r.write()
		}
		r.checkWatch()
		r.checkList()
		r.checkPages()
	}
	if r.values < steps {
		t.Errorf("%d values were seen in %d steps: the test shows nothing", r.values, steps)
	}
}

// as sends a request of a caller.
func (r *revoked) as(m member, path string) *http.Response {
	r.Helper()
	q, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.url+path, nil)
	if err != nil {
		r.Fatal(err)
	}
	q.Header.Set("Impersonate-User", "mona")
	for _, group := range append(m, "system:authenticated") {
		q.Header.Add("Impersonate-Group", group)
	}
	answer, err := r.http.Do(q)
	if err != nil {
		r.Fatal(err)
	}
	return answer
}

func (r *revoked) list(m member, query string) (c content) {
	r.Helper()
	answer := r.as(m, "/api/v1/secrets?visible=true"+query)
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&c); err != nil {
		r.Fatal(err)
	}
	return c
}

func (r *revoked) m() member {
	return [][]string{nil, {"g0"}, {"g1"}, {"g0", "g1"}}[r.random.IntN(4)]
}

// write makes one change and notes the state after it.
func (r *revoked) write() {
	r.Helper()
	r.writes++
	now := r.history.now()
	next := state{secrets: map[string]secret{}, grants: map[string]grant{}, named: now.named}
	for k, v := range now.secrets {
		next.secrets[k] = v
	}
	for k, v := range now.grants {
		next.grants[k] = v
	}
	namespace := []string{"n0", "n1", "home"}[r.random.IntN(3)]
	name := string(rune('a' + r.random.IntN(3)))
	key, value := namespace+"/"+name, fmt.Sprint("value-", r.writes)
	label := []string{"x", "y"}[r.random.IntN(2)]
	body := fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"l":%q}},"data":{"v":%q}}`, name, label,
		base64.StdEncoding.EncodeToString([]byte(value)))
	switch r.random.IntN(8) {
	case 0, 1, 2, 3:
		if _, there := next.secrets[key]; !there {
			r.do("POST", secrets(namespace), "%s", body)
		} else {
			r.do("PATCH", secrets(namespace)+"/"+name, "%s", body)
		}
		next.secrets[key] = secret{value: value, label: label}
	case 4:
		if _, there := next.secrets[key]; there {
			r.do("DELETE", secrets(namespace)+"/"+name, "")
			delete(next.secrets, key)
		}
	case 5, 6:
		g := grant{namespace, []string{"watcher", "named"}[r.random.IntN(2)], fmt.Sprint("g", r.random.IntN(2))}
		binding := g.role + "-" + g.group
		if at := namespace + "/" + binding; next.grants[at].role != "" {
			r.do("DELETE", bindings(namespace)+"/"+binding, "")
			delete(next.grants, at)
		} else {
			r.do("POST", bindings(namespace), `{"metadata":{"name":%q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",`+
				`"kind":"ClusterRole","name":%q},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group",`+
				`"name":%q}]}`, binding, g.role, g.group)
			next.grants[at] = g
		}
	case 7:
		next.named = name
		r.do("PATCH", "/apis/rbac.authorization.k8s.io/v1/clusterroles/named", `{"rules":[{"apiGroups":[""],`+
			`"resources":["secrets"],"verbs":["list","watch"],"resourceNames":[%q]}]}`, name)
	}
	var after page
	if err := json.Unmarshal(r.do("GET", secrets("home")+"?limit=1", ""), &after); err != nil {
		r.Fatal(err)
	}
	next.revision, _ = strconv.ParseInt(after.Metadata.ResourceVersion, 10, 64)
	r.history.states = append(r.history.states, next)
}

// past returns a random recent state. The model forgets role changes before these states.
func (r *revoked) past() *state {
	return &r.history.states[max(0, len(r.history.states)-1-r.random.IntN(80))]
}

// checkWatch resumes from a past revision and follows until a secret that it creates.
func (r *revoked) checkWatch() {
	r.Helper()
	m, from := r.m(), r.past()
	label := []string{"", "x"}[r.random.IntN(2)]
	fence := fmt.Sprint("fence-", r.writes)
	query := fmt.Sprintf("/api/v1/secrets?visible=true&watch=true&allowWatchBookmarks=true&resourceVersion=%d",
		from.revision)
	if label != "" {
		query += "&labelSelector=l%3D" + label
	}
	answer := r.as(m, query)
	defer answer.Body.Close()
	r.do("POST", secrets("home"), `{"metadata":{"name":%q,"labels":{"l":"x"}}}`, fence)
	known := from.visible(m, from, label)
	for d := json.NewDecoder(answer.Body); ; {
		var e struct {
			Type   string
			Object content
		}
		if err := d.Decode(&e); err != nil {
			r.Fatal(err)
		}
		o := &e.Object
		if o.Metadata.Name == fence {
			break
		}
		switch e.Type {
		case "ADDED", "MODIFIED":
			known[o.key()] = o.value()
		case "DELETED":
			delete(known, o.key())
		case "BOOKMARK":
			continue
		default:
			r.Fatalf("event %+v", e)
		}
		if strings.HasPrefix(o.Metadata.Name, "fence-") {
			delete(known, o.key())
			continue
		}
		hidden := e.Type == "DELETED" && o.Data == nil && o.Metadata.Labels == nil && o.Metadata.ManagedFields == nil &&
			o.Metadata.UID != ""
		if !hidden && !r.history.mayHaveRead(m, o.key(), o.value()) {
			r.Fatalf("%v watches from %d and gets %+v: now at %+v", m, from.revision, e, r.history.now())
		}
		r.values++
	}
	now := r.history.now()
	if want := now.visible(m, now, label); fmt.Sprint(known) != fmt.Sprint(want) {
		r.Fatalf("%v knows %v after a watch from %d, want %v", m, known, from.revision, want)
	}
}

// checkList lists at a past revision.
func (r *revoked) checkList() {
	r.Helper()
	m, at := r.m(), r.past()
	c := r.list(m, fmt.Sprintf("&resourceVersion=%d&resourceVersionMatch=Exact", at.revision))
	r.compare(m, at.revision, c.Items, at.visible(m, r.history.now(), ""))
}

func (r *revoked) compare(m member, revision int64, got []content, want map[string]string) {
	r.Helper()
	have := map[string]string{}
	for i := range got {
		if !strings.HasPrefix(got[i].Metadata.Name, "fence-") {
			have[got[i].key()] = got[i].value()
			r.values++
		}
	}
	if fmt.Sprint(have) != fmt.Sprint(want) {
		r.Fatalf("%v lists at %d and gets %v, want %v", m, revision, have, want)
	}
}

// checkPages begins a list, and continues an earlier one, as a caller of any groups.
func (r *revoked) checkPages() {
	r.Helper()
	m := r.m()
	c := r.list(m, "&limit=1")
	if revision, _ := strconv.ParseInt(c.Metadata.ResourceVersion, 10, 64); c.Metadata.Continue != "" {
		r.tokens = append(r.tokens, token{m, revision, c.Metadata.Continue})
	}
	if len(r.tokens) == 0 {
		return
	}
	one := r.tokens[max(0, len(r.tokens)-1-r.random.IntN(20))]
	m = r.m()
	c = r.list(m, "&continue="+one.text)
	if c.Code == http.StatusGone {
		r.Fatalf("the page of a list at %d is gone", one.revision)
	}
	allowed := r.history.at(one.revision).visible(m, r.history.now(), "")
	for i := range c.Items {
		item := &c.Items[i]
		if !strings.HasPrefix(item.Metadata.Name, "fence-") && allowed[item.key()] != item.value() {
			r.Fatalf("%v goes on with a list at %d and gets %s: %s", m, one.revision, item.key(), item.value())
		}
	}
}

// TestVisibleSensitive removes the permission to read sensitive fields from a caller that watches with visible=true.
// From then on the watch masks the fields, and so does a watch that resumes before the removal.
func TestVisibleSensitive(t *testing.T) {
	t.Parallel()
	config, _, _ := startSensitive(t)
	admin := viewer{T: t, http: client(t, config), url: config.Host}
	const roles, vaults = "/apis/rbac.authorization.k8s.io/v1/", "/apis/example.com/v1/namespaces/default/vaults"
	admin.do("POST", roles+"clusterrolebindings", `{"metadata":{"name":"sam-mona"},"roleRef":{"kind":"ClusterRole",`+
		`"apiGroup":"rbac.authorization.k8s.io","name":"mona"},"subjects":[{"kind":"User","name":"sam",`+
		`"apiGroup":"rbac.authorization.k8s.io"}]}`)
	made := admin.do("POST", vaults, `{"apiVersion":"example.com/v1","kind":"Vault","metadata":{"name":"a"},"spec":{`+
		`"password":"hunter2"}}`)
	var began content
	if err := json.Unmarshal(made, &began); err != nil {
		t.Fatal(err)
	}
	own := rest.AnonymousClientConfig(config)
	own.BearerToken = "sam"
	sam := viewer{T: t, http: client(t, own), url: config.Host}
	follow := func() func() string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, sam.url+
			"/apis/example.com/v1/vaults?visible=true&watch=true&resourceVersion="+began.Metadata.ResourceVersion, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := sam.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		d := json.NewDecoder(answer.Body)
		return func() string {
			var e struct {
				Object struct{ Spec struct{ Password string } }
			}
			if err := d.Decode(&e); err != nil {
				t.Fatal(err)
			}
			return e.Object.Spec.Password
		}
	}
	write := func(password string) {
		r := fmt.Sprintf(`{"spec":{"password":%q}}`, password)
		admin.do("PATCH", vaults+"/a", "%s", r)
	}
	next := follow()
	write("hunter2-1")
	if got := next(); got != "hunter2-1" {
		t.Errorf("sam may read it and gets %q", got)
	}
	admin.do("DELETE", roles+"clusterrolebindings/sam", "")
	write("hunter2-2")
	if got := next(); got != "<omitted>" {
		t.Errorf("sam may not read it any more and gets %q", got)
	}
	resumed := follow()
	for range 2 {
		if got := resumed(); got != "<omitted>" {
			t.Errorf("sam resumes and gets %q", got)
		}
	}
}
