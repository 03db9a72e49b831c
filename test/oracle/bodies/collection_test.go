package bodies

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	asMetadata = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asList     = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	asTable    = ";as=Table;g=meta.k8s.io;v=v1"
)

// compareCollection checks that a list, its metadata, its table and the events of a watch have the same contents in
// each form. path is the path of the collection and name one of its objects.
func compareCollection(t *testing.T, c *caller, path, name string) {
	t.Helper()
	for _, form := range []string{"application/yaml", protobufType, cborType} {
		sameAsJSON(t, c, path, form, "")
		sameAsJSON(t, c, path, form, asList)
		sameAsJSON(t, c, path+"/"+name, form, asMetadata)
		if form == "application/yaml" { // tables have no binary form in Kubernetes
			sameAsJSON(t, c, path, form, asTable)
		}
	}
	plain := map[string]map[string]any{}
	for _, transform := range []string{"", asMetadata} {
		for _, form := range []string{"application/json", protobufType, cborType} {
			events := initialEvents(t, c, path, form, transform)
			if form == "application/json" {
				plain = events
				a := c.do("GET", path+"/"+name, form+transform, "", nil)
				if want := value(t, a.contentType, a.body); !reflect.DeepEqual(events[name], want) {
					t.Errorf("%s%s: a watch begins with\n%v\nget has\n%v", path, transform, events[name], want)
				}
				continue
			}
			if len(events) != len(plain) {
				t.Errorf("%s as %s%s: %d events, %d in JSON", path, form, transform, len(events), len(plain))
			}
			for name, got := range events {
				want := plain[name]
				if form == protobufType {
					got, want = typed(t, got), typed(t, withoutClaimKinds(want))
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s as %s%s: event\n%v\nJSON has\n%v", path, form, transform, got, want)
				}
			}
		}
	}
}

// sameAsJSON requests a document in a form and in JSON, and compares them.
func sameAsJSON(t *testing.T, c *caller, path, form, transform string) {
	t.Helper()
	plain := c.do("GET", path, "application/json"+transform, "", nil)
	a := c.do("GET", path, form+transform, "", nil)
	if plain.code != 200 || a.code != 200 {
		t.Errorf("%s as %s%s: %d, %d in JSON: %s", path, form, transform, a.code, plain.code, a.body)
		return
	}
	got, want := value(t, a.contentType, a.body), value(t, plain.contentType, plain.body)
	if form == protobufType {
		for _, item := range items(want) {
			claimless := withoutClaimKinds(item)
			clear(item)
			for k, v := range claimless {
				item[k] = v
			}
		}
		got, want = typed(t, got), typed(t, want)
	}
	for _, answer := range []map[string]any{got, want} {
		dropTexts(answer)
		dropRevision(t, answer)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s as %s%s:\n%v\nJSON has\n%v", path, form, transform, got, want)
	}
}

// dropTexts replaces a table's cells by the kinds of their values, because ages change between two requests.
func dropTexts(table map[string]any) {
	rows, _ := table["rows"].([]any)
	for _, row := range rows {
		cells := row.(map[string]any)["cells"].([]any)
		for i := range cells {
			cells[i] = fmt.Sprintf("%T", cells[i])
		}
	}
}

// dropRevision removes the revision of a collection, because other objects may be written between two requests.
func dropRevision(t *testing.T, answer map[string]any) {
	t.Helper()
	if kind, _ := answer["kind"].(string); !strings.HasSuffix(kind, "List") && kind != "Table" {
		return
	}
	metadata, _ := answer["metadata"].(map[string]any)
	revision, _ := metadata["resourceVersion"].(string)
	if _, err := strconv.ParseUint(revision, 10, 64); err != nil {
		t.Errorf("a collection without a revision: %v", metadata)
	}
	delete(metadata, "resourceVersion")
}

// initialEvents returns the objects that a watch begins with, by their names.
func initialEvents(t *testing.T, c *caller, path, form, transform string) map[string]map[string]any {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := c.request("GET", path+
		"?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", form+
		";stream=watch"+transform, "", nil)
	if form == cborType {
		r.Header.Set("Accept", form+transform)
	}
	res, err := c.http.Do(r.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	decoder := c.streamDecoder(t, form, res)
	seen := map[string]map[string]any{}
	for {
		var event metav1.WatchEvent
		if _, _, err := decoder.Decode(nil, &event); err != nil {
			t.Fatalf("%s as %s%s: next event: %v", path, form, transform, err)
		}
		if event.Type == "BOOKMARK" {
			return seen
		}
		obj := value(t, form, event.Object.Raw)
		seen[obj["metadata"].(map[string]any)["name"].(string)] = obj
	}
}
