package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/internal/api/discovery"
	"github.com/bowsprit/bowsprit/test/oracle/apiextensions"
)

const (
	realDefinitions = "../../../../shared/crds/real/*.yaml" // of well-known projects, outside of the repository
	ownDefinitions  = "testdata/*.yaml"

	parameters = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
)

// server is the other side.
type server struct{ *apiextensions.Server }

// TestDiscovery requests everything from both sides in all forms, over the same definitions.
func TestDiscovery(t *testing.T) {
	theirs := server{apiextensions.Start(t)}
	definitions := install(t, theirs)
	var resources []*catalog.Resource
	for i := range definitions {
		r, err := crd.Resource(&definitions[i], 1, func() ([]byte, error) { return json.Marshal(definitions[i]) })
		if err != nil {
			t.Fatal(err)
		}
		resources = append(resources, r)
	}
	snap := catalog.New(resources...).Snapshot()
	h := discovery.New(discovery.Options{
		WriteError: func(_ http.ResponseWriter, r *http.Request, err error) { t.Errorf("%s: %v", r.URL, err) },
	})
	ours := func(path, accept string) answer {
		return serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r, snap) }), path,
			accept)
	}
	// Theirs follows its definitions at its own pace.
	var want answer
	within(t, "discovery to know all definitions", func() bool {
		want = serve(theirs.Aggregated, "/apis", "application/json"+parameters)
		served := 0
		for _, g := range list(t, want.body).Items {
			for _, v := range g.Versions {
				served += len(v.Resources)
			}
		}
		expected := 0
		for _, r := range resources {
			for _, v := range r.Versions {
				if v.Served {
					expected++
				}
			}
		}
		return served >= expected
	})

	t.Run("aggregated", func(t *testing.T) {
		got := ours("/apis", "application/json"+parameters)
		for _, name := range []string{"Content-Type", "Vary", "Cache-Control"} {
			if got.header.Get(name) != want.header.Get(name) {
				t.Errorf("%s: got %q, want %q", name, got.header.Get(name), want.header.Get(name))
			}
		}
		all := list(t, want.body)
		all.Items = slices.DeleteFunc(all.Items,
			func(g apidiscoveryv2.APIGroupDiscovery) bool { return g.Name == apiextensionsv1.GroupName })
		if g, w := mustJSON(t, all), strings.TrimSpace(string(got.body)); g != w {
			t.Errorf("got\n%s\nwant\n%s", w, g)
		}
	})
	for _, g := range snap.Groups() {
		for _, accept := range []string{"", "*/*", "application/json", "application/yaml",
			"application/vnd.kubernetes.protobuf", "application/json;pretty=1", "application/json" + parameters +
				",application/yaml"} {
			same(t, "/apis/"+g.Name, accept, theirs.get(t, "/apis/"+g.Name, accept), ours("/apis/"+g.Name, accept))
			for _, v := range g.Versions {
				path := "/apis/" + g.Name + "/" + v.Name
				w, o := theirs.get(t, path, accept), ours(path, accept)
				// Theirs lists resources in no order, which changes the bytes. The other forms are compared where that
				// cannot be.
				if strings.HasSuffix(w.header.Get("Content-Type"), "json") {
					w.body, o.body = sorted(t, w.body), sorted(t, o.body)
				} else if len(v.Resources) > 1 {
					w.body, o.body = nil, nil
				}
				same(t, path, accept, w, o)
			}
		}
	}
}

func serve(h http.Handler, path, accept string) answer {
	r, w := httptest.NewRequest("GET", path, nil), httptest.NewRecorder()
	r.Header.Set("Accept", accept)
	h.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.Bytes()}
}

func same(t *testing.T, path, accept string, want, got answer) {
	t.Helper()
	if got.code != want.code || got.header.Get("Content-Type") != want.header.Get("Content-Type") ||
		string(got.body) != string(want.body) {
		t.Errorf("%s as %q: got %d %q\n%s\nwant %d %q\n%s", path, accept, got.code, got.header.Get("Content-Type"),
			got.body, want.code, want.header.Get("Content-Type"), want.body)
	}
}

// sorted orders the resources of a list by name and keeps each resource's bytes.
func sorted(t *testing.T, body []byte) []byte {
	t.Helper()
	var doc struct {
		metav1.TypeMeta
		GroupVersion string
		Resources    []json.RawMessage
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	slices.SortFunc(doc.Resources, func(a, b json.RawMessage) int { return strings.Compare(string(a), string(b)) })
	return []byte(mustJSON(t, doc))
}

func list(t *testing.T, body []byte) *apidiscoveryv2.APIGroupDiscoveryList {
	t.Helper()
	out := &apidiscoveryv2.APIGroupDiscoveryList{}
	if err := json.Unmarshal(body, out); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return out
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

type answer struct {
	code   int
	header http.Header
	body   []byte
}

func (s server) get(t *testing.T, path, accept string) answer {
	t.Helper()
	r, err := http.NewRequest("GET", s.Config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	client, err := rest.HTTPClientFor(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	w, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	body, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{w.StatusCode, w.Header, body}
}

// install creates all definitions at s and returns them once they are established.
func install(t *testing.T, s server) []apiextensionsv1.CustomResourceDefinition {
	client, err := clientset.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	crds := client.ApiextensionsV1().CustomResourceDefinitions()
	own, _ := filepath.Glob(ownDefinitions)
	others, _ := filepath.Glob(realDefinitions)
	for _, file := range append(own, others...) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range strings.Split(string(raw), "\n---") {
			def := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal([]byte(doc), def); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if def.Kind != "CustomResourceDefinition" || def.Spec.PreserveUnknownFields {
				continue
			}
			if strings.HasSuffix(def.Spec.Group, ".k8s.io") {
				def.Annotations = map[string]string{"api-approved.kubernetes.io": "unapproved, for a test"}
			}
			if _, err := crds.Create(context.Background(), def, metav1.CreateOptions{}); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
	}
	var out []apiextensionsv1.CustomResourceDefinition
	within(t, "all definitions to be established", func() bool {
		all, err := crds.List(context.Background(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		out = all.Items
		return !slices.ContainsFunc(out,
			func(def apiextensionsv1.CustomResourceDefinition) bool { return !established(&def) })
	})
	return out
}

func established(def *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(def.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}

// within polls the other server, which gives no other sign, until done.
func within(t *testing.T, desc string, done func() bool) {
	t.Helper()
	limit, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for !done() {
		select {
		case <-limit.Done():
			t.Fatal(fmt.Errorf("waiting for %s: %w", desc, limit.Err()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}
