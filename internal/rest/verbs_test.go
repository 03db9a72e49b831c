package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// step is one request of a story and the expectations on its response.
type step struct {
	do    string            // METHOD path, with the query
	body  string            // YAML for apply, JSON otherwise
	code  int               // of the response
	holds map[string]string // fields of the response by path, as text; "<none>" for a missing field
}

const (
	one        = "/api/v1/namespaces/default/configmaps/one"
	all        = "/api/v1/namespaces/default/configmaps"
	pod        = "/api/v1/namespaces/default/pods/one"
	deployment = "/apis/apps/v1/namespaces/default/deployments/one"
	tab        = "/apis/stable.example.com/v1/namespaces/default/crontabs"
)

// TestVerbs runs stories about the effects of verbs on objects, each against its own server, bypassing front.
func TestVerbs(t *testing.T) {
	t.Parallel()
	create := func(name, more string) step {
		return step{
			do: "POST " + all, body: `{"metadata":{"name":"` + name + `"` + more + `},"data":{"a":"b"}}`, code: 201,
		}
	}
	stories := map[string][]step{
		"a write that changes nothing is none": {
			create("one", ""),
			{
				do: "PUT " + one, body: `{"metadata":{"name":"one"},"data":{"a":"c"}}`, code: 200,
				holds: map[string]string{"data.a": "c", "metadata.resourceVersion": "RV+1"},
			},
			{
				do: "PUT " + one, body: `{"metadata":{"name":"one"},"data":{"a":"c"}}`, code: 200,
				holds: map[string]string{"metadata.resourceVersion": "RV+0"},
			},
			{
				do: "MERGE " + one, body: `{"data":{"a":"c"}}`, code: 200,
				holds: map[string]string{"metadata.resourceVersion": "RV+0"},
			},
			{
				do: "JSON " + one, body: `[{"op":"test","path":"/data/a","value":"c"}]`, code: 200,
				holds: map[string]string{"metadata.resourceVersion": "RV+0"},
			},
		},
		"a dry run writes nothing": {
			{
				do: "POST " + all + "?dryRun=All", body: `{"metadata":{"name":"one","resourceVersion":"7"}}`, code: 201,
				holds: map[string]string{"metadata.uid": "*", "metadata.resourceVersion": "<none>"},
			},
			{do: "GET " + one, code: 404},
			create("one", ""),
			{
				do: "PUT " + one + "?dryRun=All", body: `{"metadata":{"name":"one"},"data":{"a":"c"}}`, code: 200,
				holds: map[string]string{"data.a": "c", "metadata.resourceVersion": "RV+0"},
			},
			{do: "DELETE " + one + "?dryRun=All", code: 200, holds: map[string]string{"status": "Success"}},
			{do: "DELETE " + all + "?dryRun=All", code: 200},
			{do: "GET " + one, code: 200, holds: map[string]string{"data.a": "b"}},
		},
		"finalizers hold an object, and the last one lets it go": {
			create("one", `,"finalizers":["example.com/a","example.com/b"]`),
			{
				do: "DELETE " + one, code: 200,
				holds: map[string]string{"metadata.deletionTimestamp": "*", "metadata.deletionGracePeriodSeconds": "0"},
			},
			{do: "MERGE " + one, body: `{"metadata":{"finalizers":["example.com/c"]}}`, code: 422},
			{
				do: "MERGE " + one, body: `{"metadata":{"finalizers":["example.com/b"]}}`, code: 200,
				holds: map[string]string{"metadata.finalizers": "[example.com/b]"},
			},
			{do: "DELETE " + one, code: 200},
			{do: "MERGE " + one, body: `{"metadata":{"finalizers":null}}`, code: 200},
			{do: "GET " + one, code: 404},
		},
		"an empty list of managedFields ends tracking": {
			{
				do:   "APPLY " + one + "?fieldManager=me",
				body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"a":"b"}}`, code: 201,
				holds: map[string]string{"metadata.managedFields.#": "1"},
			},
			{
				do: "PUT " + one, body: `{"metadata":{"name":"one"},"data":{"a":"c"}}`, code: 200,
				holds: map[string]string{"metadata.managedFields.#": "1"},
			},
			{
				do: "PUT " + one, body: `{"metadata":{"name":"one","managedFields":[]},"data":{"a":"d"}}`, code: 200,
				holds: map[string]string{"metadata.managedFields": "<none>"},
			},
			{
				do: "MERGE " + one, body: `{"data":{"a":"e"}}`, code: 200,
				holds: map[string]string{"metadata.managedFields": "<none>"},
			},
		},
		"who sets a label through status owns it there": {
			{
				do:   "APPLY " + pod + "?fieldManager=me",
				body: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"one","labels":{"a":"1"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`, code: 201,
			},
			{do: "APPLY " + pod + "/status?fieldManager=me",
				body: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"one","labels":{"b":"2"}},"spec":{"nodeName":"n"}}`, code: 200,
				holds: map[string]string{
					"metadata.labels": "map[a:1 b:2]", "metadata.managedFields.#": "2", "spec.nodeName": "<none>",
				}},
		},
		"an ephemeral container stays": {
			{
				do:   "POST /api/v1/namespaces/default/pods",
				body: `{"metadata":{"name":"one"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, code: 201,
			},
			{
				do:   "MERGE " + pod + "/ephemeralcontainers",
				body: `{"spec":{"ephemeralContainers":[{"name":"e","image":"i","terminationMessagePolicy":"File"}]}}`,
				code: 200,
			},
			{do: "MERGE " + pod + "/ephemeralcontainers", body: `{"spec":{"ephemeralContainers":null}}`, code: 422},
			{
				do:   "JSON " + pod + "/ephemeralcontainers",
				body: `[{"op":"remove","path":"/spec/ephemeralContainers/0"}]`, code: 422,
			},
			{do: "GET " + pod, code: 200, holds: map[string]string{"spec.ephemeralContainers.#": "1"}},
		},
		"a pod says in which zone its node is": {
			{
				do:   "POST /api/v1/nodes",
				body: `{"metadata":{"name":"n","labels":{"topology.kubernetes.io/zone":"z","topology.kubernetes.io/region":"r","topology.kubernetes.io/rack":"k"}}}`, code: 201,
			},
			{
				do:   "POST /api/v1/namespaces/default/pods",
				body: `{"metadata":{"name":"one","labels":{"a":"b","topology.kubernetes.io/zone":"own"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`, code: 201,
			},
			{
				do: "POST " + pod + "/binding", body: `{"target":{"kind":"Node","name":"n"}}`, code: 400,
				holds: map[string]string{"message": "name in URL does not match name in Binding object"},
			},
			{
				do: "POST " + pod + "/binding", body: `{"metadata":{"name":"one"},"target":{"kind":"Node","name":"n"}}`,
				code: 201,
			},
			{
				do: "GET " + pod, code: 200,
				holds: map[string]string{
					"metadata.labels": "map[a:b topology.kubernetes.io/region:r topology.kubernetes.io/zone:z]",
				},
			},
			{do: "POST /api/v1/namespaces/default/pods",
				body: `{"metadata":{"name":"two"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}`,
				code: 201,
				holds: map[string]string{
					"metadata.labels": "map[topology.kubernetes.io/region:r topology.kubernetes.io/zone:z]",
				}},
			{
				do:   "POST /api/v1/namespaces/default/pods",
				body: `{"metadata":{"name":"three"},"spec":{"nodeName":"other","containers":[{"name":"c","image":"i"}]}}`, code: 201, holds: map[string]string{"metadata.labels": "<none>"},
			},
		},
		"a daemon set's creator owns the count of its templates": {
			{do: "POST /apis/apps/v1/namespaces/default/daemonsets",
				body: `{"metadata":{"name":"one"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`, code: 201,
				holds: map[string]string{
					"metadata.annotations":                         "map[deprecated.daemonset.template.generation:1]",
					"metadata.managedFields.0.fieldsV1.f:metadata": "map[f:annotations:map[.:map[] f:deprecated.daemonset.template.generation:map[]]]",
				}},
		},
		"conditions of a deletion": {
			create("one", ""),
			{
				do: "DELETE " + one, body: `{"preconditions":{"uid":"other"}}`, code: 409,
				holds: map[string]string{"reason": "Conflict"},
			},
			{do: "DELETE " + one, body: `{"preconditions":{"resourceVersion":"1"}}`, code: 409},
			{
				do: "DELETE " + one, body: `{"kind":"Foo"}`, code: 400,
				holds: map[string]string{
					"message": `no kind "Foo" is registered for version "meta.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"`,
				},
			},
			{do: "DELETE " + one, body: `{"kind":"DeleteOptions","apiVersion":"v1"}`, code: 200},
			{do: "DELETE " + one, code: 404},
		},
		"a collection is deleted by its labels": {
			create("one", `,"labels":{"x":"y"}`), create("two", `,"labels":{"x":"z"}`), create("three", ""),
			{do: "DELETE " + all + "?labelSelector=x", code: 200},
			{do: "GET " + all, code: 200, holds: map[string]string{"items.#": "1"}},
		},
		"pages are of one revision": {
			create("a", ""), create("b", ""), create("c", ""),
			{
				do: "GET " + all + "?limit=2", code: 200,
				holds: map[string]string{"items.#": "2", "metadata.remainingItemCount": "1"},
			},
			create("d", ""),
			{
				do: "GET " + all + "?limit=2&continue=CONTINUE", code: 200,
				holds: map[string]string{"items.#": "1", "metadata.continue": "<none>"},
			},
		},
		"names are made": {
			{
				do: "POST " + all, body: `{"metadata":{"generateName":"x-"}}`, code: 201,
				holds: map[string]string{"metadata.generateName": "x-", "metadata.name": "*"},
			},
			{do: "POST " + all, body: `{"metadata":{}}`, code: 422},
		},
		"the generation counts changes beyond metadata": {
			{
				do:   "POST " + tab,
				body: `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"t","generation":9},"spec":1}`, code: 201, holds: map[string]string{"metadata.generation": "1"},
			},
			{
				do: "MERGE " + tab + "/t", body: `{"metadata":{"labels":{"a":"b"}}}`, code: 200,
				holds: map[string]string{"metadata.generation": "1"},
			},
			{
				do: "MERGE " + tab + "/t", body: `{"spec":2}`, code: 200,
				holds: map[string]string{"metadata.generation": "2"},
			},
			{
				do:   "PUT " + tab + "/t",
				body: `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"t"},"spec":3}`,
				code: 422,
			},
		},
		"apply owns, and force takes": {
			{
				do:   "APPLY " + one + "?fieldManager=first",
				body: `{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {a: b, c: d}}`, code: 201,
			},
			{
				do:   "APPLY " + one + "?fieldManager=second",
				body: `{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {a: x}}`, code: 409,
				holds: map[string]string{"reason": "Conflict"},
			},
			{
				do:   "APPLY " + one + "?fieldManager=second&force=true",
				body: `{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {a: x}}`, code: 200,
				holds: map[string]string{"data.a": "x", "data.c": "d"},
			},
			{
				do:   "APPLY " + one + "?fieldManager=first",
				body: `{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}`, code: 200,
				holds: map[string]string{"data.a": "x", "data.c": "<none>"},
			},
		},
		"protobuf does not know empty lists, nor nulls in maps of bytes": {
			{
				do:   "POST /api/v1/namespaces/default/limitranges?dryRun=All",
				body: `{"metadata":{"name":"one"},"spec":{"limits":[]}}`, code: 201,
				holds: map[string]string{"spec": "map[limits:<nil>]"},
			},
			{
				do:   "POST /api/v1/namespaces/default/limitranges",
				body: `{"metadata":{"name":"one"},"spec":{"limits":[]}}`, code: 201,
				holds: map[string]string{"spec": "map[limits:<nil>]"},
			},
			{
				do: "GET /api/v1/namespaces/default/limitranges/one", code: 200,
				holds: map[string]string{"spec": "map[limits:<nil>]"},
			},
			{
				do:   "PUT /api/v1/namespaces/default/limitranges/one",
				body: `{"metadata":{"name":"one"},"spec":{"limits":[]}}`, code: 200,
				holds: map[string]string{"spec": "map[limits:<nil>]", "metadata.resourceVersion": "RV+0"},
			},
			{
				do: "POST /api/v1/namespaces/default/secrets", body: `{"metadata":{"name":"one"},"data":{"a":null}}`,
				code: 201, holds: map[string]string{"data": "map[a:]"},
			},
		},
		"what has no name may get one": {
			{
				do: "POST /api/v1/namespaces/default/limitranges", body: `{"metadata":{}}`, code: 201,
				holds: map[string]string{"metadata.name": "*", "metadata.uid": "*"},
			},
			{do: "POST " + all, body: `{"metadata":{}}`, code: 422},
		},
		"a job has the labels that its pods get": {
			{do: "POST /apis/batch/v1/namespaces/default/jobs",
				body: `{"metadata":{"name":"one"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`, code: 201,
				holds: map[string]string{"metadata.labels.job-name": "one", "metadata.labels.controller-uid": "*"}},
			{
				do: "GET /apis/batch/v1/namespaces/default/jobs?labelSelector=job-name=one", code: 200,
				holds: map[string]string{"items.#": "1"},
			},
		},
		"an autoscaler of the first version aims at the use of processors": {
			{do: "POST /apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers?dryRun=All",
				body: `{"metadata":{"name":"one"},"spec":{"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}}`, code: 201,
				holds: map[string]string{
					"spec.targetCPUUtilizationPercentage":                                       "80",
					"metadata.managedFields.0.fieldsV1.f:spec.f:targetCPUUtilizationPercentage": "map[]",
				}},
			{do: "POST /apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers",
				body: `{"metadata":{"name":"one","annotations":{"autoscaling.alpha.kubernetes.io/metrics":"[{\"type\":\"Resource\",\"resource\":{\"name\":\"memory\",\"targetAverageUtilization\":50}}]"}},"spec":{"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}}`, code: 201,
				holds: map[string]string{"spec.targetCPUUtilizationPercentage": "<none>"}},
		},
		"metadata has one form, however it comes": {
			{do: "APPLY " + tab + "/t?fieldManager=me",
				body: `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"t","labels":{"a":null},"annotations":{},"finalizers":[],"ownerReferences":[],"selfLink":"x"}}`, code: 201,
				holds: map[string]string{
					"metadata.labels": "map[a:]", "metadata.annotations": "<none>", "metadata.finalizers": "<none>",
					"metadata.ownerReferences": "<none>", "metadata.selfLink": "<none>",
				}},
			{
				do: "MERGE " + tab + "/t", body: `{"metadata":{"selfLink":"x","managedFields":[]}}`, code: 200,
				holds: map[string]string{"metadata.selfLink": "<none>", "metadata.managedFields.#": "1"},
			},
			{do: "MERGE " + tab + "/t", body: `{"metadata":5}`, code: 422},
			{
				do:   "POST " + tab,
				body: `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"u","ownerReferences":[]}}`, code: 201, holds: map[string]string{"metadata.ownerReferences": "<none>"},
			},
			{
				do: "POST " + all, body: `{"metadata":{"name":"one","generation":7}}`, code: 201,
				holds: map[string]string{"metadata.generation": "7"},
			},
		},
		"who scales to nothing owns nothing": {
			{
				do:   "APPLY " + deployment + "?fieldManager=me",
				body: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"one"},"spec":{"replicas":3,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`, code: 201,
			},
			{
				do:   "PUT " + deployment + "/scale?fieldManager=other",
				body: `{"metadata":{"name":"one"},"spec":{"replicas":2}}`, code: 200,
			},
			{
				do:   "APPLY " + deployment + "?fieldManager=me",
				body: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"one"},"spec":{"replicas":3}}`,
				code: 409,
			},
			{
				do:   "PUT " + deployment + "/scale?fieldManager=other",
				body: `{"metadata":{"name":"one"},"spec":{"replicas":0}}`, code: 200,
				holds: map[string]string{"spec": "map[]"},
			},
			{
				do: "GET " + deployment, code: 200,
				holds: map[string]string{"spec.replicas": "0", "metadata.managedFields.#": "1"},
			},
		},
		"a patch of a scale is checked": {
			{
				do:   "APPLY " + deployment + "?fieldManager=me",
				body: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"one"},"spec":{"replicas":3,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`, code: 201,
			},
			{do: "MERGE " + deployment + "/scale", body: `{"spec":{"replicas":"x"}}`, code: 422},
			{do: "MERGE " + deployment + "/scale", body: `{"kind":"Pod"}`, code: 422},
			{
				do: "MERGE " + deployment + "/scale?fieldValidation=Strict", body: `{"spec":{"replicas":4,"bogus":1}}`,
				code: 422,
			},
			{
				do: "MERGE " + deployment + "/scale?fieldValidation=Ignore", body: `{"spec":{"replicas":4,"bogus":1}}`,
				code: 200, holds: map[string]string{"spec": "map[replicas:4]"},
			},
		},
		"unknown fields, by fieldValidation": {
			{do: "POST " + all + "?fieldValidation=Strict", body: `{"metadata":{"name":"one"},"bogus":1}`, code: 400},
			{
				do: "POST " + all + "?fieldValidation=Ignore", body: `{"metadata":{"name":"one"},"bogus":1}`, code: 201,
				holds: map[string]string{"bogus": "<none>"},
			},
		},
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			if strings.Contains(story[0].do, "stable.example.com") {
				if _, err := defineCrontabs(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			run(t, s, story)
		})
	}
}

// TestUpdated checks the calls of Config.Updated: one for each written target, and no others.
func TestUpdated(t *testing.T) {
	t.Parallel()
	var events []string
	s := startWith(t, memory.New(), func(c *verb.Config) {
		c.Updated = map[string]func(old, now object.Object){"pods/status": func(old, now object.Object) {
			events = append(events, look(old, "status.phase")+" to "+look(now, "status.phase"))
		}}
	})
	run(t, s, []step{
		{
			do:   "POST /api/v1/namespaces/default/pods",
			body: `{"metadata":{"name":"one"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, code: 201,
		},
		{do: "MERGE " + pod, body: `{"metadata":{"labels":{"a":"b"}}}`, code: 200},
		{do: "MERGE " + pod + "/status?dryRun=All", body: `{"status":{"phase":"Failed"}}`, code: 200},
		{
			do: "MERGE " + pod + "/status", body: `{"metadata":{"resourceVersion":"1"},"status":{"phase":"Failed"}}`,
			code: 409,
		},
		{do: "MERGE " + pod + "/status", body: `{"status":{"phase":"Running"}}`, code: 200},
	})
	if len(events) != 1 || events[0] != "Pending to Running" {
		t.Errorf("told of %q", events)
	}
}

func defineCrontabs(ctx context.Context, s *server) (*verb.Result, error) {
	return create(ctx, s, definitions, "", crontabDefinition())
}

// run sends the steps. RV+n in an expectation is the resourceVersion of the object in the previous response (+0), or a
// newer one (+1); CONTINUE in a query is the token of the previous response.
func run(t *testing.T, s *server, story []step) {
	t.Helper()
	before := map[string]any{}
	for _, st := range story {
		verb, path, _ := strings.Cut(st.do, " ")
		token, _, _ := unstructured.NestedString(before, "metadata", "continue")
		if token != "" {
			before["kept"] = token
		}
		if kept, ok := before["kept"].(string); ok {
			path = strings.Replace(path, "CONTINUE", kept, 1)
		}
		code, answer := perform(t, s, verb, path, st.body)
		if code != st.code {
			t.Fatalf("%s: %d, want %d: %v", st.do, code, st.code, answer["message"])
		}
		for field, want := range st.holds {
			got := look(answer, field)
			switch {
			case want == "*" && got != "<none>":
			case want == "RV+0" && got == look(before, field):
			case want == "RV+1" && got != look(before, field):
			case got != want:
				t.Errorf("%s: %s is %s, want %s", st.do, field, got, want)
			}
		}
		if kept, ok := before["kept"]; ok && answer["kept"] == nil {
			answer["kept"] = kept
		}
		before = answer
	}
}

// look returns the field at a path as text; "#" at its end is the length of a list, "0" between two names its first
// item.
func look(obj map[string]any, path string) string {
	path, length := strings.CutSuffix(path, ".#")
	if first, below, ok := strings.Cut(path, ".0."); ok {
		list, _, _ := unstructured.NestedSlice(obj, strings.Split(first, ".")...)
		if len(list) == 0 {
			return "<none>"
		}
		return look(list[0].(map[string]any), below)
	}
	v, found, _ := unstructured.NestedFieldNoCopy(obj, strings.Split(path, ".")...)
	list, _ := v.([]any)
	switch {
	case length:
		return fmt.Sprint(len(list))
	case !found:
		return "<none>"
	}
	return fmt.Sprint(v)
}

// perform sends a request as the administrator, bypassing front.
func perform(t *testing.T, s *server, verb, path, body string) (int, map[string]any) {
	t.Helper()
	method, contentType := verb, "application/json"
	switch verb {
	case "MERGE":
		method, contentType = http.MethodPatch, "application/merge-patch+json"
	case "JSON":
		method, contentType = http.MethodPatch, "application/json-patch+json"
	case "APPLY":
		method, contentType = http.MethodPatch, "application/apply-patch+yaml"
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := httptest.NewRequestWithContext(request.NewContext(ctx, &request.Scope{}), method, path,
		strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("User-Agent", "test")
	info, err := request.Parse(r)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r, info, admin)
	answer := map[string]any{}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%s %s: %v in %s", verb, path, err, w.Body)
	}
	return w.Code, answer
}

// TestTooLarge checks that an object too large with its managedFields is stored without them, except by an apply, which
// exists to own fields.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	keys := func(prefix string) string {
		var b strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&b, `,"a-long-name-that-makes-the-list-of-owned-fields-long-%s%d":"x"`, prefix, i)
		}
		return `{` + b.String()[1:] + `}`
	}
	etcd := memory.New()
	etcd.MaxRequestBytes = 100 << 10
	run(t, startWith(t, etcd, func(*verb.Config) {}), []step{
		{
			do: "POST " + all, body: `{"metadata":{"name":"one"},"data":` + keys("a") + `}`, code: 201,
			holds: map[string]string{"metadata.managedFields": "<none>"},
		},
		{
			do:   "APPLY " + one + "?fieldManager=me",
			body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}}`, code: 500,
			holds: map[string]string{"message": "etcdserver: request is too large"},
		},
		{
			do: "POST " + all, body: `{"metadata":{"name":"two"},"data":{"a":"b"}}`, code: 201,
			holds: map[string]string{"metadata.managedFields.#": "1"},
		},
		{
			do: "MERGE " + all + "/two", body: `{"data":` + keys("b") + `}`, code: 200,
			holds: map[string]string{"metadata.managedFields": "<none>"},
		},
		{
			do: "MERGE " + all + "/two", body: `{"data":` + keys("c") + `}`, code: 500,
			holds: map[string]string{"message": "etcdserver: request is too large"},
		},
	})
}
