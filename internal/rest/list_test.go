package rest_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
)

// ask sends a request as admin, bypassing front. body may be "".
func ask(t *testing.T, s *server, method, target, body string, accept ...string) *httptest.ResponseRecorder {
	t.Helper()
	return requestIn(t.Context(), t, s, method, target, body, accept...)
}

// requestIn is ask for a client that waits until ctx ends.
func requestIn(ctx context.Context, t *testing.T, s *server, method, target, body string, accept ...string,
) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	for _, a := range accept {
		r.Header.Set("Accept", a)
		if a == codec.CBOR {
			r = r.WithContext(codec.WithCBOR(r.Context()))
		}
	}
	info, err := request.Parse(r)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r, info, admin)
	return w
}

// send is ask for a request that must succeed; into may be nil.
func send(t *testing.T, s *server, method, target, body string, into any) {
	t.Helper()
	w := ask(t, s, method, target, body)
	if w.Code/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, target, w.Code, w.Body)
	}
	if into != nil {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatal(err)
		}
	}
}

const widgets = "/apis/a.example.com/v1/widgets"

// widgetsIn is the path of the widgets of a namespace.
func widgetsIn(namespace string) string {
	return "/apis/a.example.com/v1/namespaces/" + namespace + "/widgets"
}

// defineWidgets creates a kind with the selectable fields spec.bucket and spec.mode; mode has a default.
func defineWidgets(t *testing.T, s *server) {
	t.Helper()
	send(t, s, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"widgets.a.example.com"},"spec":{"group":"a.example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},
		"versions":[{"name":"v1","served":true,"storage":true,"selectableFields":[{"jsonPath":".spec.bucket"},{"jsonPath":".spec.mode"}],
		"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{
		"bucket":{"type":"string"},"mode":{"type":"string","default":"auto"}}}}}}}]}}`, nil)
}

// list is the part of a list that tests read.
type list struct {
	Metadata metav1.ListMeta
	Items    []struct {
		Metadata metav1.ObjectMeta
		Spec     struct{ Bucket, Mode string }
	}
}

func (l *list) names() []string {
	var names []string
	for _, o := range l.Items {
		names = append(names, o.Metadata.Namespace+"/"+o.Metadata.Name)
	}
	return names
}

// TestSelectors compares lists by selectors with a scan of all objects, for more objects than are searched without an
// index, and while they change.
func TestSelectors(t *testing.T) {
	t.Parallel()
	s := start(t)
	defineWidgets(t, s)
	for _, ns := range []string{"default", "other"} {
		if ns != "default" {
			send(t, s, http.MethodPost, "/api/v1/namespaces",
				`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+ns+`"}}`, nil)
		}
		for i := range 150 {
			mode := ""
			if i%3 == 0 {
				mode = `,"mode":"manual"`
			}
			send(t, s, http.MethodPost, widgetsIn(ns),
				fmt.Sprintf(
					`{"apiVersion":"a.example.com/v1","kind":"Widget","metadata":{"name":"w%03d","labels":{"shard":"s%d"}},
				"spec":{"bucket":"b%d"%s}}`, i, i%4, i%10, mode), nil)
		}
	}
	check := func() {
		t.Helper()
		var all list
		send(t, s, http.MethodGet, widgets, "", &all)
		for _, tc := range []struct {
			path, query string
			keep        func(i int) bool
		}{
			{widgets, "fieldSelector=spec.bucket%3Db3", func(i int) bool { return all.Items[i].Spec.Bucket == "b3" }},
			{widgets, "fieldSelector=spec.bucket%3D", func(i int) bool { return all.Items[i].Spec.Bucket == "" }},
			{widgets, "fieldSelector=spec.bucket!%3Db3", func(i int) bool { return all.Items[i].Spec.Bucket != "b3" }},
			{widgets, "fieldSelector=spec.bucket%3Db3,metadata.namespace%3Dother", func(i int) bool {
				return all.Items[i].Spec.Bucket == "b3" && all.Items[i].Metadata.Namespace == "other"
			}},
			{widgets, "fieldSelector=metadata.namespace%3Dother,metadata.name%3Dw003", func(i int) bool {
				return all.Items[i].Metadata.Name == "w003" && all.Items[i].Metadata.Namespace == "other"
			}},
			{widgets, "fieldSelector=metadata.name%3Dw003",
				func(i int) bool { return all.Items[i].Metadata.Name == "w003" }},
			{widgets, "fieldSelector=spec.mode%3Dmanual&labelSelector=shard%3Ds1", func(i int) bool {
				return all.Items[i].Spec.Mode == "manual" && all.Items[i].Metadata.Labels["shard"] == "s1"
			}},
			{widgets, "labelSelector=shard%3Ds2",
				func(i int) bool { return all.Items[i].Metadata.Labels["shard"] == "s2" }},
			{widgets, "labelSelector=shard+in+(s2)",
				func(i int) bool { return all.Items[i].Metadata.Labels["shard"] == "s2" }},
			{widgets, "labelSelector=shard+in+(s2,s3)",
				func(i int) bool { l := all.Items[i].Metadata.Labels["shard"]; return l == "s2" || l == "s3" }},
			{widgets, "labelSelector=!shard", func(i int) bool { return all.Items[i].Metadata.Labels["shard"] == "" }},
			{widgetsIn("other"), "fieldSelector=spec.bucket%3Db3", func(i int) bool {
				return all.Items[i].Spec.Bucket == "b3" && all.Items[i].Metadata.Namespace == "other"
			}},
			{widgetsIn("other"), "fieldSelector=spec.mode%3Dauto", func(i int) bool {
				return all.Items[i].Spec.Mode == "auto" && all.Items[i].Metadata.Namespace == "other"
			}},
		} {
			var want []string
			for i, name := range all.names() {
				if tc.keep(i) {
					want = append(want, name)
				}
			}
			for range 3 { // the first time there is no index
				var got list
				send(t, s, http.MethodGet, tc.path+"?"+tc.query, "", &got)
				if !slices.Equal(got.names(), want) {
					t.Errorf("%s?%s: got %v, want %v", tc.path, tc.query, got.names(), want)
				}
			}
			var pages []string
			for next := ""; ; {
				var page list
				send(t, s, http.MethodGet, tc.path+"?"+tc.query+"&limit=7&continue="+next, "", &page)
				pages = append(pages, page.names()...)
				if next = page.Metadata.Continue; next == "" {
					break
				}
				// Changes between two pages do not appear in them.
				send(t, s, http.MethodPatch, widgetsIn("default")+"/w149",
					`{"spec":{"bucket":"b3"},"metadata":{"labels":{"x":"`+next[:8]+`"}}}`, nil)
				send(t, s, http.MethodPatch, widgetsIn("default")+"/w149", `{"spec":{"bucket":"b9"}}`, nil)
			}
			if !slices.Equal(pages, want) {
				t.Errorf("%s?%s in pages: got %v, want %v", tc.path, tc.query, pages, want)
			}
		}
	}
	check()
	send(t, s, http.MethodPatch, widgetsIn("other")+"/w003",
		`{"spec":{"bucket":"b4"},"metadata":{"labels":{"shard":"s2"}}}`, nil)
	send(t, s, http.MethodPatch, widgetsIn("other")+"/w005", `{"spec":{"bucket":"b3","mode":"manual"}}`, nil)
	send(t, s, http.MethodPatch, widgetsIn("other")+"/w006", `{"spec":{"bucket":null},"metadata":{"labels":null}}`, nil)
	send(t, s, http.MethodDelete, widgetsIn("default")+"/w013", "", nil)
	check()
	// Another definition has another default, for objects that were written before it.
	send(t, s, http.MethodPatch, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.a.example.com",
		`{"spec":{"versions":[{"name":"v1","served":true,"storage":true,
		"selectableFields":[{"jsonPath":".spec.bucket"},{"jsonPath":".spec.mode"}],"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{
		"bucket":{"type":"string","default":"b3"},"mode":{"type":"string"}}}}}}}]}}`, nil)
	var unset list
	send(t, s, http.MethodGet, widgets+"?fieldSelector=spec.bucket%3Db3,metadata.name%3Dw006", "", &unset)
	if got := unset.names(); !slices.Contains(got, "other/w006") {
		t.Errorf("objects whose bucket is now the default: %v", got)
	}
	check()
}

// TestItemsOfBuiltInKinds checks that, as in Kubernetes, only items of custom kinds have apiVersion and kind. A large
// item is written past the buffer.
func TestItemsOfBuiltInKinds(t *testing.T) {
	t.Parallel()
	s := start(t)
	defineWidgets(t, s)
	send(t, s, http.MethodPost, widgetsIn("default"), widget("w", "b1"), nil)
	const maps = "/api/v1/namespaces/default/configmaps"
	send(t, s, http.MethodPost, maps, `{"metadata":{"name":"small"},"data":{"kind":"x"}}`, nil)
	send(t, s, http.MethodPost, maps, `{"metadata":{"name":"zlarge"},"data":{"apiVersion":"`+
		strings.Repeat("y", 200<<10)+`"}}`, nil)
	var l struct{ Items []map[string]any }
	send(t, s, http.MethodGet, maps, "", &l)
	found := 0
	for _, item := range l.Items {
		if item["kind"] != nil || item["apiVersion"] != nil {
			t.Errorf("an item of a built-in kind says %v %v", item["apiVersion"], item["kind"])
		}
		if data, ok := item["data"].(map[string]any); ok &&
			(data["kind"] == "x" || len(fmt.Sprint(data["apiVersion"])) == 200<<10) {
			found++
		}
	}
	if found != 2 {
		t.Errorf("%d of the objects are there with their data", found)
	}
	send(t, s, http.MethodGet, widgetsIn("default"), "", &l)
	if len(l.Items) != 1 || l.Items[0]["kind"] != "Widget" {
		t.Errorf("items of a custom kind: %v", l.Items)
	}
}

// TestListEnds checks the end of lists: custom objects have an empty continue, and empty lists of metadata null items.
func TestListEnds(t *testing.T) {
	t.Parallel()
	s := start(t)
	defineWidgets(t, s)
	const metadata = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	for _, c := range []struct{ path, accept, want string }{
		{widgets, "", `"items":[],"kind":"WidgetList","metadata":{"continue":"","resourceVersion":"`},
		{widgets, metadata, `"items":null,"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"`},
		{all, "", `"items":[],"kind":"ConfigMapList","metadata":{"resourceVersion":"`},
		{all, metadata, `"items":null,"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"`},
	} {
		got := ask(t, s, http.MethodGet, c.path, "", c.accept).Body.String()
		if !strings.Contains(got, c.want) {
			t.Errorf("%s as %q: %s", c.path, c.accept, got)
		}
		boxed, _ := read(t, s, "GET "+c.path, strings.Replace(cmp.Or(c.accept, "application/json"), "json", "cbor", 1))
		var fromJSON, fromCBOR map[string]any
		if err := errors.Join(json.Unmarshal([]byte(got), &fromJSON),
			codec.UnmarshalCBOR([]byte(boxed), &fromCBOR)); err != nil || !reflect.DeepEqual(fromJSON, fromCBOR) {
			t.Errorf("%s as %q in CBOR: %v, %v, want %v", c.path, c.accept, fromCBOR, err, fromJSON)
		}
	}
}
