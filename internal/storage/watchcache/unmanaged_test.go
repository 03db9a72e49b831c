package watchcache

import (
	"testing"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

func TestUnmanaged(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{`{"metadata":{"managedFields":[{"a":"]"}],"name":"n"},"spec":{}}`, `"name":"n","resourceVersion":"1"},"spec":{}}`},
		{`{"metadata":{"labels":{},"managedFields":[],"name":"n"}}`, `"labels":{},"name":"n","resourceVersion":"1"}}`},
		{`{"metadata":{"name":"n"},"spec":{"managedFields":[]}}`,
			`"name":"n","resourceVersion":"1"},"spec":{"managedFields":[]}}`},
	} {
		e, err := newEntry("n", store.Record{Value: []byte(c[0]), Revision: 1}, newInterner())
		if err != nil {
			t.Fatal(err)
		}
		if got := string(e.Unmanaged()); got != `{"metadata":{`+c[1] {
			t.Errorf("%s without managedFields is %s", c[0], got)
		}
	}
}

func TestPartOf(t *testing.T) {
	t.Parallel()
	const doc = `{"metadata":{"annotations":{"a/b":"x\"]"},"managedFields":[{"name":"no"}],"name":"n"},"spec":{},"status":null}`
	for _, c := range []struct {
		names []string
		want  string
	}{
		{nil, doc},
		{[]string{"metadata", "name"}, `"n"`},
		{[]string{"metadata", "annotations", "a/b"}, `"x\"]"`},
		{[]string{"metadata", "managedFields"}, `[{"name":"no"}]`},
		{[]string{"spec"}, `{}`},
		{[]string{"status"}, `null`},
		{[]string{"spec", "nodeName"}, ""},
		{[]string{"status", "phase"}, ""},
		{[]string{"metadata", "name", "first"}, ""},
		{[]string{"data"}, ""},
	} {
		if got := string(PartOf([]byte(doc), c.names...)); got != c.want {
			t.Errorf("%q is %s, want %s", c.names, got, c.want)
		}
	}
	if got := PartOf(nil, "metadata"); got != nil {
		t.Errorf("of nothing: %s", got)
	}
}
