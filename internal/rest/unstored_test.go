package rest_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/rest"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// TestUnstored reads virtual objects in all forms. The responses come from a running kube-apiserver 1.36.3, with sorted
// keys.
func TestUnstored(t *testing.T) {
	t.Parallel()
	verbs := verb.New(verb.Config{
		Catalog: catalog.New(kinds.Resources()...), Now: time.Now,
		Finders: map[string]verb.Finder{"componentstatuses": func(_ context.Context, _, name string) ([]object.Object,
			error) {
			status := func(name, value string) object.Object {
				return object.Object{
					"metadata":   object.Object{"name": name},
					"conditions": []any{object.Object{"type": "Healthy", "status": value, "message": "m"}},
				}
			}
			switch name {
			case "":
				return []object.Object{status("a", "True"), status("b", "False")}, nil
			case "a":
				return []object.Object{status("a", "True")}, nil
			}
			return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "componentstatus"}, name)
		}},
	})
	s := &server{Verbs: verbs, Server: rest.New(rest.Config{Verbs: verbs, WatchAtLeast: time.Minute})}
	const (
		root     = "/api/v1/componentstatuses"
		a        = `"conditions":[{"message":"m","status":"True","type":"Healthy"}]`
		b        = `"conditions":[{"message":"m","status":"False","type":"Healthy"}]`
		itemA    = `{` + a + `,"metadata":{"name":"a"}}`
		itemB    = `{` + b + `,"metadata":{"name":"b"}}`
		warning  = "v1 ComponentStatus is deprecated in v1.19+"
		metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	)
	list := func(items string) string {
		return `{"apiVersion":"v1","items":[` + items + `],"kind":"ComponentStatusList","metadata":{}}`
	}
	for _, c := range []struct{ do, accept, want, warning string }{
		{"GET " + root + "/a", "", `{"apiVersion":"v1",` + a + `,"kind":"ComponentStatus","metadata":{"name":"a"}}`,
			warning},
		{"GET " + root + "/a?resourceVersion=x", "application/yaml",
			"apiVersion: v1\nconditions:\n- message: m\n  status: \"True\"\n  type: Healthy\nkind: ComponentStatus\nmetadata:\n  name: a", warning},
		{"GET " + root + "/a", metadata,
			`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}`, warning},
		{"GET " + root + "/c", "", `componentstatus "c" not found`, warning},
		{"GET " + root, "", list(itemA + "," + itemB), warning},
		{"GET " + root + "?limit=1&resourceVersion=x&continue=x", "", list(itemA + "," + itemB), warning},
		{"GET " + root + "?fieldSelector=metadata.name%3Db", "", list(itemB), warning},
		{"GET " + root + "?fieldSelector=metadata.namespace%3Db", "", list(""), warning},
		{"GET " + root + "?labelSelector=x", "", list(""), warning},
		{"GET " + root + "?labelSelector=!x", "", list(itemA + "," + itemB), warning},
		{"GET " + root + "?fieldSelector=foo%3Db", "",
			`"foo" is not a known field selector: only "metadata.name", "metadata.namespace"`, warning},
		{"GET " + root + "?fieldSelector=metadata.name%3Db", "application/json;as=Table;g=meta.k8s.io;v=v1",
			`"rows":[{"cells":["b","Unhealthy","m",""],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"b"}}}]}`, warning},
		{"GET " + root + "?watch=true", "", `watch is not supported on resources of kind "componentstatuses"`, warning},
		{"POST " + root, "", "the server does not allow this method on the requested resource", ""},
		{"DELETE " + root, "", "the server does not allow this method on the requested resource", ""},
		{"DELETE " + root + "/a", "", "the server does not allow this method on the requested resource", ""},
		{"GET " + root + "/a/status", "", "the server could not find the requested resource", ""},
	} {
		body, warnings := read(t, s, c.do, c.accept)
		if !strings.Contains(body, c.want) && !strings.Contains(body, strings.ReplaceAll(c.want, `"`, `\"`)) {
			t.Errorf("%s %s:\n%s, want\n%s", c.do, c.accept, body, c.want)
		}
		if c.warning != "" && warnings != `299 - "`+c.warning+`"` || c.warning == "" && warnings != "" {
			t.Errorf("%s: warnings %q, want %q", c.do, warnings, c.warning)
		}
	}
	body, _ := read(t, s, "GET "+root, codec.Protobuf)
	found := &corev1.ComponentStatusList{}
	if _, err := codec.FromProtobuf([]byte(body), found); err != nil {
		t.Fatal(err)
	}
	if len(found.Items) != 2 || found.Items[1].Name != "b" || found.Items[1].Conditions[0].Message != "m" ||
		found.ResourceVersion != "" {
		t.Errorf("in protobuf: %v", found)
	}
	body, _ = read(t, s, "GET "+root, codec.CBOR)
	found = &corev1.ComponentStatusList{}
	if err := codec.UnmarshalCBOR([]byte(body), found); err != nil {
		t.Fatal(err)
	}
	if len(found.Items) != 2 || found.Items[1].Name != "b" || found.Items[1].Conditions[0].Message != "m" ||
		found.ResourceVersion != "" {
		t.Errorf("in CBOR: %v", found)
	}
}

// read is a request without package front; it returns the body and the warnings.
func read(t *testing.T, s *server, do, accept string) (body, warnings string) {
	t.Helper()
	method, path, _ := strings.Cut(do, " ")
	scope := &request.Scope{}
	r := httptest.NewRequestWithContext(request.NewContext(codec.WithCBOR(t.Context()), scope), method, path,
		http.NoBody)
	r.Header.Set("Accept", accept)
	info, err := request.Parse(r)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r, info, admin)
	data, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), strings.Join(scope.Warnings(), "|")
}
