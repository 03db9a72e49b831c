package rest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestScaleForms reads the scale of a built-in and of a custom object in all forms. The columns come from a running
// kube-apiserver 1.36.3.
func TestScaleForms(t *testing.T) {
	t.Parallel()
	s := start(t)
	send(t, s, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"foos.cr.bar.com"},"spec":{"group":"cr.bar.com","scope":"Namespaced","names":{"plural":"foos","kind":"Foo"},
		"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},
		"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`, nil)
	const foos, controllers = "/apis/cr.bar.com/v1/namespaces/default/foos",
		"/api/v1/namespaces/default/replicationcontrollers"
	send(t, s, http.MethodPost, foos,
		`{"apiVersion":"cr.bar.com/v1","kind":"Foo","metadata":{"name":"a"},"spec":{"replicas":2}}`, nil)
	send(t, s, http.MethodPost, controllers,
		`{"metadata":{"name":"a"},"spec":{"replicas":2,"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"b"}]}}}}`, nil)
	for _, tc := range []struct {
		path, goType, nameFormat, ageType, desired string
	}{
		{foos, "v1.Scale", "name", "date", "Number of desired replicas"},
		{controllers, "autoscaling.Scale", "", "string",
			"replicas is the desired number of instances for the scaled object."},
	} {
		for _, write := range []bool{false, true} {
			table := &metav1.Table{}
			replicas := 2.0
			if write {
				replicas = 3
			}
			scaleAs(t, s, tc.path, ";as=Table;g=meta.k8s.io;v=v1", write, table)
			if len(table.ColumnDefinitions) != 4 || len(table.Rows) != 1 || table.ResourceVersion == "" ||
				table.Kind != "Table" {
				t.Fatalf("%s: table %+v", tc.path, table)
			}
			name, desired, age := table.ColumnDefinitions[0], table.ColumnDefinitions[1], table.ColumnDefinitions[3]
			if name.Format != tc.nameFormat || desired.Name != "Desired" || desired.Type != "integer" ||
				desired.Description != tc.desired || age.Type != tc.ageType {
				t.Errorf("%s: columns %+v", tc.path, table.ColumnDefinitions)
			}
			cells := table.Rows[0].Cells
			if cells[0] != "a" || cells[1] != replicas || cells[2] != 0.0 {
				t.Errorf("%s: cells %v", tc.path, cells)
			}
			if raw := string(table.Rows[0].Object.Raw); !strings.Contains(raw, `"kind":"PartialObjectMetadata"`) ||
				strings.Contains(raw, "replicas") {
				t.Errorf("%s: object %s", tc.path, raw)
			}
		}
		part := map[string]any{}
		scaleAs(t, s, tc.path, ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1", false, &part)
		if part["kind"] != "PartialObjectMetadata" || part["spec"] != nil ||
			part["metadata"].(map[string]any)["name"] != "a" {
			t.Errorf("%s: metadata %v", tc.path, part)
		}
		st := &metav1.Status{}
		if code := scaleAs(t, s, tc.path, ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", false,
			st); code != http.StatusNotAcceptable ||
			st.Message != "you requested PartialObjectMetadataList, but the requested object is not a list (*"+
				tc.goType+")" {
			t.Errorf("%s: list of metadata: %d %s", tc.path, code, st.Message)
		}
	}
}

// scaleAs reads the scale of an object named a in a form, or writes 3 replicas to it.
func scaleAs(t *testing.T, s *server, path, as string, write bool, into any) int {
	t.Helper()
	method, body := http.MethodGet, ""
	if write {
		method, body = http.MethodPatch, `{"spec":{"replicas":3}}`
	}
	w := ask(t, s, method, path+"/a/scale", body, "application/json"+as)
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		t.Fatalf("%s: %v: %s", path, err, w.Body)
	}
	return w.Code
}

// TestExport requests the parameter export, which Kubernetes had until 1.20.
func TestExport(t *testing.T) {
	t.Parallel()
	s := start(t)
	const at = "/apis/apps/v1/namespaces/default/replicasets"
	send(t, s, http.MethodPost, at,
		`{"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"b"}]}}}}`, nil)
	for query, code := range map[string]int{
		"export=true": 400, "export=x": 400, "export=": 400, "export": 400, "export=false": 200, "export=False": 200,
		"export=0": 200, "exact=true": 200,
	} {
		for _, sub := range []string{"", "/status", "/scale"} {
			w := ask(t, s, http.MethodGet, at+"/a"+sub+"?"+query, "")
			if w.Code != code || code == 400 &&
				!strings.Contains(w.Body.String(),
					"the export parameter, deprecated since v1.14, is no longer supported") {
				t.Errorf("%s?%s: %d %s", sub, query, w.Code, w.Body)
			}
		}
		send(t, s, http.MethodGet, at+"?"+query, "", nil)
	}
}

// TestBodiesOfActions sends bodies of evictions and bindings without a kind, or with another one. The responses come
// from a running kube-apiserver 1.36.3.
func TestBodiesOfActions(t *testing.T) {
	t.Parallel()
	s := start(t)
	const pods = "/api/v1/namespaces/default/pods"
	for _, name := range []string{"a", "b", "c"} {
		send(t, s, http.MethodPost, pods, `{"metadata":{"name":"`+name+
			`"},"spec":{"containers":[{"name":"a","image":"b"}]}}`, nil)
	}
	for _, tc := range []struct {
		path, body string
		code       int
		message    string
	}{
		{pods + "/a/eviction", `{}`, 400, "name in URL does not match name in Eviction object"},
		{pods + "/a/eviction", `{"metadata":{"name":"a"},"deleteOptions":{"dryRun":["All"]}}`, 201, ""},
		{pods + "/a/eviction", `{"apiVersion":"policy/v1","metadata":{"name":"a"},"deleteOptions":{"dryRun":["All"]}}`,
			201, ""},
		{pods + "/a/eviction", `{"kind":"Eviction","metadata":{"name":"a"},"deleteOptions":{"dryRun":["All"]}}`, 201,
			""},
		{pods + "/a/eviction",
			`{"kind":"Eviction","apiVersion":"policy/v1beta1","metadata":{"name":"a"},"deleteOptions":{"dryRun":["All"]}}`, 201, ""},
		{pods + "/a/eviction", `{"kind":"Eviction","apiVersion":"v1","metadata":{"name":"a"}}`, 400,
			`Eviction in version "v1" cannot be handled as a Eviction: no kind "Eviction" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"`},
		{pods + "/a/eviction", `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}`, 400,
			`Pod in version "v1" cannot be handled as a Eviction: converting (v1.Pod) to (policy.Eviction): unknown conversion`},
		{pods + "/a/eviction", `{"kind":"Pod","metadata":{"name":"a"}}`, 400,
			`Pod in version "v1" cannot be handled as a Eviction: no kind "Pod" is registered for version "policy/v1" in scheme "pkg/runtime/scheme.go:111"`},
		{pods + "/a/eviction?fieldValidation=Strict", `{"metadata":{"name":"a"},"unk":1}`, 400,
			`Eviction in version "v1" cannot be handled as a Eviction: strict decoding error: unknown field "unk"`},
		{pods + "/a/eviction?fieldValidation=Strict", `{"metadata":{"name":"a"},"unk":1,"metadata":{"name":"a"}}`, 400,
			`Eviction in version "v1" cannot be handled as a Eviction: strict decoding error: unknown field "unk", duplicate field "metadata"`},
		{pods + "/b/binding?fieldValidation=Strict", `{"metadata":{"name":"b"},"target":{"name":"n","unk":1}}`, 400,
			`Binding in version "v1" cannot be handled as a Binding: strict decoding error: unknown field "target.unk"`},
		{pods + "/b/binding", `{"target":{"name":"n1"}}`, 400, "name in URL does not match name in Binding object"},
		{pods + "/b/binding", `{"metadata":{"name":"b"},"target":{"name":"n1"}}`, 201, ""},
		{"/api/v1/namespaces/default/bindings", `{"metadata":{"name":"c"},"target":{"name":"n1"}}`, 201, ""},
	} {
		w := ask(t, s, http.MethodPost, tc.path, tc.body)
		var st metav1.Status
		if err := json.Unmarshal(w.Body.Bytes(), &st); err != nil || w.Code != tc.code || st.Message != tc.message {
			t.Errorf("%s %s: %d %q", tc.path, tc.body, w.Code, st.Message)
		}
	}
}

// TestBodiesOfUpdates sends bodies of other kinds and names. The responses come from a running kube-apiserver 1.36.3.
func TestBodiesOfUpdates(t *testing.T) {
	t.Parallel()
	s := start(t)
	const in = "/api/v1/namespaces/default"
	send(t, s, http.MethodPost, in+"/pods",
		`{"metadata":{"name":"a"},"spec":{"containers":[{"name":"a","image":"b"}]}}`, nil)
	send(t, s, http.MethodPost, in+"/replicationcontrollers",
		`{"metadata":{"name":"a"},"spec":{"replicas":2,"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"b"}]}}}}`, nil)
	const scale = in + "/replicationcontrollers/a/scale?fieldValidation=Strict"
	for _, tc := range []struct {
		path, body string
		code       int
		message    string
	}{
		{scale, `{"kind":"Scale","apiVersion":"extensions/v1beta1","metadata":{"name":"a"}}`, 400,
			"the API version in the data (extensions/v1beta1) does not match the expected API version (autoscaling/v1)"},
		{scale, `{"kind":"Scale","apiVersion":"apps/v1beta2","metadata":{"name":"a"}}`, 400,
			"the API version in the data (apps/v1beta2) does not match the expected API version (autoscaling/v1)"},
		{scale, `{"metadata":{"name":"a"},"spec":{"replicas":5,"unk":1,"unk":2}}`, 400,
			`Scale in version "v1" cannot be handled as a Scale: strict decoding error: unknown field "spec.unk"`},
		{scale, `{"metadata":{"name":"a"},"spec":{"replicas":5}}`, 200, ""},
		{in + "/pods/a/resize", `{"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"a"}}`, 400,
			`Eviction in version "v1" cannot be handled as a Pod: converting (v1.Eviction) to (core.Pod): unknown conversion`},
		{in + "/configmaps/none", `{}`, 400,
			"the name of the object (none based on URL) was undeterminable: name must be provided"},
		{in + "/configmaps/none", `{"metadata":{"name":"other"}}`, 400,
			"the name of the object (other) does not match the name on the URL (none)"},
		{in + "/configmaps/none", `{"metadata":{"name":"none","namespace":"other"}}`, 400,
			"the namespace of the provided object does not match the namespace sent on the request"},
		{in + "/configmaps/none", `{"metadata":{"name":"none"}}`, 404, `configmaps "none" not found`},
		{in + "/replicationcontrollers/none/scale", `{}`, 400,
			"the name of the object (none based on URL) was undeterminable: name must be provided"},
		{in + "/replicationcontrollers/none/scale", `{"metadata":{"name":"none"}}`, 404,
			`replicationcontrollers "none" not found`},
	} {
		w := ask(t, s, http.MethodPut, tc.path, tc.body)
		var st metav1.Status
		if w.Code != http.StatusOK {
			if err := json.Unmarshal(w.Body.Bytes(), &st); err != nil {
				t.Fatal(err)
			}
		}
		if w.Code != tc.code || st.Message != tc.message {
			t.Errorf("%s %s: %d %q", tc.path, tc.body, w.Code, st.Message)
		}
	}
}
