package convert

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bowsprit/bowsprit/test/oracle/apiextensions"
	"github.com/bowsprit/bowsprit/test/oracle/fixture"
	"github.com/bowsprit/bowsprit/testserver"
)

// TestDryRuns sends the same random writes, most of them dry runs, to Bowsprit and to apiextensions-apiserver, for
// random definitions of several versions, and compares the responses and the final objects. ORACLE_DEFINITIONS and
// ORACLE_WRITES are their numbers, ORACLE_SEED is the first seed. ORACLE_KUBECONFIG names the kubeconfig of a
// kube-apiserver without definitions in example.com for the comparison (test/conformance/sut.sh starts one).
func TestDryRuns(t *testing.T) {
	ours, theirs := newClient(t, testserver.Start(t).RESTConfig()), newClient(t, kubernetes(t))
	hook := newMover(t)
	seed := uint64(fixture.Setting("ORACLE_SEED", 1))
	compared := 0
	for i := range fixture.Setting("ORACLE_DEFINITIONS", 6) {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		d := randomKind(r, i)
		body := d.definition(hook)
		for _, s := range []*side{ours, theirs} {
			s.must("POST", definition, "application/json", body)
		}
		for _, v := range d.versions {
			for _, s := range []*side{ours, theirs} {
				s.until(d.path(v), func(code int, _ []byte) bool { return code == http.StatusOK })
			}
		}
		for n := range fixture.Setting("ORACLE_WRITES", 120) {
			w := d.write(r)
			hook.broken.Store(w.method == "POST" && r.IntN(8) == 0)
			got, want := w.send(ours), w.send(theirs)
			broken := hook.broken.Swap(false)
			// Kubernetes drops managers that it cannot convert
			if strings.Contains(mustJSON(w.body), "never") {
				disown(got.body)
				disown(want.body)
			}
			if compared++; !reflect.DeepEqual(got, want) {
				raw, _ := json.Marshal(w.body)
				t.Fatalf(
					"definition %d, write %d (webhook broken: %v):\n%s %s %s\n%s\nBowsprit:\n%s\nKubernetes:\n%s\ndefinition:\n%s",
					i, n, broken, w.method, w.path, w.contentType, raw, got, want, mustJSON(body["spec"]))
			}
		}
		for _, v := range d.versions {
			for _, name := range names {
				w := request{method: "GET", path: d.path(v) + "/" + name}
				if got, want := w.send(ours), w.send(theirs); !reflect.DeepEqual(got, want) {
					t.Fatalf("definition %d: %s in the end:\nBowsprit:\n%s\nKubernetes:\n%s", i, w.path, got, want)
				}
			}
		}
	}
	t.Logf("%d answers were the same", compared)
}

func kubernetes(t *testing.T) *rest.Config {
	t.Helper()
	file := os.Getenv("ORACLE_KUBECONFIG")
	if file == "" {
		return apiextensions.Start(t).Config
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1 // no limit
	return config
}

var names = []string{"a", "b", "c"}

// mover is a webhook that renames spec.text to spec.words in conversions to v2, and back. It refuses to convert the
// word "never", and everything while it is broken.
type mover struct {
	*httptest.Server
	broken atomic.Bool
}

func newMover(t testing.TB) *mover {
	m := &mover{}
	m.Server = httptest.NewUnstartedServer(m)
	m.Config.ErrorLog = log.New(io.Discard, "", 0)
	m.StartTLS()
	t.Cleanup(m.Close)
	return m
}

func (m *mover) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Request struct {
			UID               string           `json:"uid"`
			DesiredAPIVersion string           `json:"desiredAPIVersion"`
			Objects           []map[string]any `json:"objects"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || m.broken.Load() {
		http.Error(w, "broken", http.StatusInternalServerError)
		return
	}
	result := map[string]any{"status": "Success"}
	for _, obj := range review.Request.Objects {
		from, to := "words", "text"
		if strings.HasSuffix(review.Request.DesiredAPIVersion, "/v2") {
			from, to = "text", "words"
		}
		if spec, ok := obj["spec"].(map[string]any); ok {
			if text, has := spec[from]; has {
				delete(spec, from)
				spec[to] = text
			}
			if spec[to] == "never" {
				result = map[string]any{"status": "Failure", "message": "never is not converted"}
			}
		}
		if obj["metadata"] == nil {
			obj["metadata"] = map[string]any{} // of objects that structured-merge-diff has cut
		}
		obj["apiVersion"] = review.Request.DesiredAPIVersion
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
		"response": map[string]any{
			"uid": review.Request.UID, "result": result, "convertedObjects": review.Request.Objects,
		}})
}

// kind is a random definition.
type kind struct {
	plural   string
	webhook  bool
	versions []string
	spec     map[string]any // of the definition, without its conversion
	status   map[string]bool
	scale    map[string]bool
}

func randomKind(r *rand.Rand, i int) kind {
	d := kind{plural: fmt.Sprintf("kinds%d", i), webhook: i%2 == 1, status: map[string]bool{}, scale: map[string]bool{}}
	stored := r.IntN(3)
	var versions []any
	for n, name := range []string{"v1", "v2", "v3"} {
		v := map[string]any{
			"name": name, "served": true, "storage": n == stored,
			"schema": map[string]any{"openAPIV3Schema": randomSchema(r, d.webhook)},
		}
		subresources := map[string]any{}
		if d.status[name] = r.IntN(4) > 0; d.status[name] {
			subresources["status"] = map[string]any{}
		}
		if d.scale[name] = r.IntN(3) > 0; d.scale[name] {
			subresources["scale"] = map[string]any{
				"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
			}
		}
		v["subresources"] = subresources
		versions = append(versions, v)
		d.versions = append(d.versions, name)
	}
	d.spec = map[string]any{
		"group": "example.com", "scope": "Cluster", "versions": versions,
		"names": map[string]any{
			"plural": d.plural, "singular": fmt.Sprintf("kind%d", i), "kind": fmt.Sprintf("Kind%d", i),
			"listKind": fmt.Sprintf("Kind%dList", i),
		},
	}
	return d
}

// randomSchema declares some of the fields in writes, and gives some of them defaults.
//
// With all set, it declares all of them: if a webhook returns undeclared fields, Kubernetes loses the object's
// managedFields.
func randomSchema(r *rand.Rand, all bool) map[string]any {
	or := func(schema map[string]any, defaults ...any) map[string]any {
		if r.IntN(3) == 0 {
			schema["default"] = defaults[r.IntN(len(defaults))]
		}
		if r.IntN(5) == 0 {
			schema["nullable"] = true
		}
		return schema
	}
	object := func(properties map[string]any) map[string]any {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if !all && name != "replicas" && r.IntN(4) == 0 {
				delete(properties, name)
			}
		}
		schema := map[string]any{"type": "object", "properties": properties}
		if !all && r.IntN(6) == 0 {
			schema["x-kubernetes-preserve-unknown-fields"] = true
		}
		return schema
	}
	spec := object(map[string]any{
		"text": or(map[string]any{"type": "string"}, "t", "tt"), "words": or(map[string]any{"type": "string"}, "w"),
		"count": or(map[string]any{"type": "integer"}, 1, 2), "replicas": or(map[string]any{"type": "integer"}, 1),
		"deep": or(object(map[string]any{
			"x": or(map[string]any{"type": "string"}, "x"), "y": or(map[string]any{"type": "boolean"}, true),
		}), map[string]any{}),
		"list": map[string]any{"type": "array", "x-kubernetes-list-type": "map",
			"x-kubernetes-list-map-keys": []string{"key"}, "items": map[string]any{
				"type": "object", "required": []string{"key"},
				"properties": map[string]any{
					"key": map[string]any{"type": "string"}, "n": or(map[string]any{"type": "integer"}, 7),
				},
			}},
	})
	status := object(map[string]any{
		"replicas": map[string]any{"type": "integer"}, "phase": or(map[string]any{"type": "string"}, "Unknown"),
	})
	return map[string]any{"type": "object", "properties": map[string]any{
		"spec": or(spec, map[string]any{}), "status": or(status, map[string]any{}, map[string]any{"replicas": 0}),
	}}
}

func (d kind) path(version string) string { return "/apis/example.com/" + version + "/" + d.plural }

func (d kind) definition(hook *mover) map[string]any {
	spec := maps.Clone(d.spec)
	if d.webhook {
		spec["conversion"] = map[string]any{"strategy": "Webhook",
			"webhook": map[string]any{"conversionReviewVersions": []string{"v1"}, "clientConfig": map[string]any{
				"url":      hook.URL,
				"caBundle": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}),
			}}}
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": d.plural + ".example.com"}, "spec": spec,
	}
}

// request is the request to both servers.
type request struct {
	method, path, contentType string
	body                      any
}

// write returns a random write.
func (d kind) write(r *rand.Rand) request {
	version, name := d.versions[r.IntN(len(d.versions))], names[r.IntN(len(names))]
	verb, manager := r.IntN(8), []string{"me", "you"}[r.IntN(2)]
	if d.webhook {
		// Kubernetes searches all versions, in random order, for fields that a manager no longer applies. A new manager
		// has applied none.
		manager = fmt.Sprint("manager-", r.Uint32())
	}
	object := map[string]any{
		"apiVersion": "example.com/" + version, "kind": d.spec["names"].(map[string]any)["kind"],
		"metadata": map[string]any{"name": name},
	}
	some := func(into map[string]any, values map[string]any) {
		for _, k := range slices.Sorted(maps.Keys(values)) {
			if r.IntN(3) == 0 {
				into[k] = values[k]
			}
		}
	}
	dryRun := r.IntN(3) > 0
	words := []string{"one", "two", "two", "three", "three", "never"}
	if !dryRun {
		words[5] = "one" // Kubernetes' dry runs treat unreadable objects as absent
	}
	spec, status, deep := map[string]any{}, map[string]any{}, map[string]any{}
	some(deep, map[string]any{"x": words[r.IntN(3)], "y": false, "z": 1})
	some(spec, map[string]any{
		"text": words[r.IntN(len(words))], "words": words[r.IntN(len(words))], "count": r.IntN(3),
		"replicas": r.IntN(4), "deep": deep, "unknown": true,
		"list": []any{map[string]any{"key": words[r.IntN(2)]}},
	})
	some(status, map[string]any{"replicas": r.IntN(3), "phase": words[r.IntN(4)]})
	some(object, map[string]any{"spec": spec, "status": status})
	meta := object["metadata"].(map[string]any)
	if r.IntN(4) == 0 {
		meta["labels"] = map[string]any{"color": words[r.IntN(3)]}
	}
	if r.IntN(12) == 0 {
		meta["finalizers"] = []string{"example.com/wait"}
	}

	w := request{path: d.path(version) + "/" + name, contentType: "application/json", body: object}
	query := []string{}
	if dryRun {
		query = append(query, "dryRun=All")
	}
	sub := ""
	if d.status[version] && r.IntN(3) == 0 {
		sub = "/status"
	}
	switch verb {
	case 0, 1:
		w.method, w.path, sub = "POST", d.path(version), ""
		if dryRun && r.IntN(4) == 0 {
			delete(meta, "name")
			meta["generateName"] = "made-"
		} else if spec["text"] == "never" || spec["words"] == "never" {
			// for a name that exists and an object that cannot be converted, a dry run reports one error in Kubernetes
			// and the other here
			meta["name"] = "new"
		}
	case 2:
		w.method = "PUT"
	case 3:
		w.method, w.contentType = "PATCH", "application/merge-patch+json"
		delete(object, "apiVersion")
		delete(object, "kind")
		if r.IntN(3) == 0 {
			object["status"] = nil
		}
	case 4:
		w.method, w.contentType = "PATCH", "application/json-patch+json"
		w.body = []any{
			map[string]any{
				"op": "add", "path": []string{"/spec", "/metadata/labels"}[r.IntN(2)],
				"value": map[string]any{"text": "one"},
			},
		}
	case 5, 6:
		w.method, w.contentType = "PATCH", "application/apply-patch+yaml"
		delete(spec, "unknown")
		delete(deep, "z")
		if len(spec) == 0 {
			delete(object, "spec") // structured-merge-diff may turn it into null
		}
		query = append(query, "force=true", "fieldManager="+manager)
	case 7:
		w.method, w.body, sub = "DELETE", nil, ""
		switch {
		case d.scale[version] && r.IntN(2) == 0:
			w, sub = rescale(r, w, name), "/scale"
		case r.IntN(6) == 0:
			w.path = d.path(version)
			query = append(query, []string{"", "labelSelector=color%3Done"}[r.IntN(2)])
		}
	}
	w.path += sub
	if len(query) > 0 {
		w.path += "?" + strings.Join(query, "&")
	}
	return w
}

// rescale turns w into a write of its scale, sometimes for another object.
func rescale(r *rand.Rand, w request, name string) request {
	meta, spec := map[string]any{"name": name}, map[string]any{"replicas": r.IntN(5)}
	if r.IntN(4) == 0 {
		meta["uid"] = "other"
	}
	scale := map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": meta, "spec": spec}
	switch r.IntN(3) {
	case 0:
		w.method = "PUT"
		if r.IntN(4) == 0 {
			delete(spec, "replicas") // 0
		}
	default:
		w.method, w.contentType = "PATCH", "application/merge-patch+json"
		delete(scale, "apiVersion")
		delete(scale, "kind")
		delete(meta, "name")
	}
	w.body = scale
	return w
}

// answer is a server's response, without the parts that depend on chance and clocks.
type answer struct {
	code int
	body any
}

func (a answer) String() string { return fmt.Sprint(a.code, " ", mustJSON(a.body)) }

func (w request) send(s *side) answer {
	s.Helper()
	code, raw := s.do(w.method, w.path, w.contentType, w.body)
	out := answer{code: code}
	if err := json.Unmarshal(raw, &out.body); err != nil {
		s.Fatalf("%s %s: %d %s", w.method, w.path, code, raw)
	}
	blur(out.body)
	return out
}

func disown(v any) {
	if obj, ok := v.(map[string]any); ok {
		if meta, ok := obj["metadata"].(map[string]any); ok {
			delete(meta, "managedFields")
		}
	}
}

// blur hides the differences between two servers: uids, times, revisions and random names.
func blur(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			switch text, isText := e.(string); {
			case isText &&
				slices.Contains([]string{"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "time"},
					k):
				v[k] = "some"
			case isText && k == "name" && strings.HasPrefix(text, "made-"):
				v[k] = "made-some"
			case isText && k == "message":
				v[k] = blurMessage(text)
			default:
				blur(e)
			}
			if entries, ok := e.([]any); ok && k == "managedFields" { // their order depends on seconds
				slices.SortFunc(entries, func(a, b any) int { return strings.Compare(mustJSON(a), mustJSON(b)) })
			}
		}
	case []any:
		for _, e := range v {
			blur(e)
		}
	}
}

// blurMessage hides uids, and the list of undeclared fields: structured-merge-diff stops at the first in an object, and
// checks fields in the order of a Go map. So the number of reported fields is random.
//
// It also hides the object's key in etcd, which has a prefix of the server's own, and which Kubernetes' dry runs omit.
func blurMessage(text string) string {
	text, _, _ = strings.Cut(text, ", UID in object meta: ")
	if before, after, found := strings.Cut(text, "Key: "); found {
		_, after, _ = strings.Cut(after, ",")
		text = before + after
	}
	text, _, _ = strings.Cut(text, " uid ")
	text, _, _ = strings.Cut(text, "errors:")
	// and at the versions of other writers of the object
	text, _, _ = strings.Cut(text, "failed to convert merged object at version ")
	text, _, _ = strings.Cut(": "+strings.TrimSuffix(text, ": "), ": .")
	return strings.TrimPrefix(text, ": ")
}

func mustJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}
