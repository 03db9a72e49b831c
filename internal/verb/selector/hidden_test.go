package selector

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// only shows the objects of one namespace.
type only struct {
	request.Visibility
	namespace string
}

func (o only) IncludesAll(namespace string) bool    { return namespace == o.namespace }
func (o only) Includes(namespace, name string) bool { return namespace == o.namespace }

// TestHidden has objects in two namespaces, a readable and an unreadable one in each, and a caller who sees one of the
// namespaces. Errors about unreadable objects and conversions must not be about an object of the other one.
func TestHidden(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	st, err := store.Open(t.Context(),
		store.Config{Etcd: memory.New(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	for _, namespace := range []string{"hidden", "seen"} {
		for name, value := range map[string]string{"bad": "?", "good": `{"metadata":{"name":"good","uid":"1"}}`} {
			if _, err := st.Create(t.Context(), "pods/"+namespace+"/"+name, []byte(value)); err != nil {
				t.Fatal(err)
			}
		}
	}
	view := watchcache.New(st, watchcache.Options{Log: log})
	if err := view.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	of := Collection{
		Resource: &catalog.Resource{Plural: "pods", Namespaced: true}, Version: &catalog.Version{Name: "v1"},
		NeedsWebhook: true,
	}
	for want, visible := range map[string]request.Visibility{
		"hidden/bad seen/bad": nil, "seen/bad": only{namespace: "seen"}, "": only{},
	} {
		sel, err := New(of, nil, nil, visible)
		if err != nil {
			t.Fatal(err)
		}
		keys := func(entries []*watchcache.Entry) string {
			var out []string
			for _, e := range entries {
				out = append(out, e.Key())
			}
			return strings.Join(out, " ")
		}
		snapshot := view.Collection("pods").Snapshot()
		if got := keys(sel.Unreadable(snapshot, "", 10)); got != want {
			t.Errorf("unreadable are %q, want %q", got, want)
		}
		sel.Windows(snapshot, "", 10, func(window []*watchcache.Entry) bool {
			for _, e := range window {
				if !sel.Sight.Includes(e) {
					t.Errorf("%s is converted and hidden", e.Key())
				}
			}
			return true
		})
		var shown []*watchcache.Entry
		snapshot.Scan("", "", func(e *watchcache.Entry) bool {
			if _, ok := sel.Show(watchcache.Added, e, nil); ok && e.Unreadable() != nil {
				shown = append(shown, e)
			}
			return true
		})
		if got := keys(shown); got != want {
			t.Errorf("a watch shows %q, want %q", got, want)
		}
	}
}
