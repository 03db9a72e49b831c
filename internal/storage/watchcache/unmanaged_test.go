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
