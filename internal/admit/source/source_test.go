package source

import (
	"testing"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

func TestListFollowsTheView(t *testing.T) {
	s, err := store.Open(t.Context(),
		store.Config{Prefix: "/registry", Etcd: memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	v := watchcache.New(s, watchcache.Options{})
	put := func(name string) {
		t.Helper()
		if _, err := s.Create(t.Context(), "things/"+name, []byte(`{"metadata":{"name":"`+name+`"}}`)); err != nil {
			t.Fatal(err)
		}
	}
	put("b")
	if err := v.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	go func() { _ = v.Run(t.Context()) }()

	compiled := map[string]int{}
	src := New(v.Collection("things"), func(e *watchcache.Entry) (string, bool) {
		compiled[e.Name]++
		return e.Name, e.Name != "bad"
	})
	first := src.List()
	if len(first.Items) != 1 || src.List() != first {
		t.Fatalf("items %v; the list of an unchanged collection is the same one", first.Items)
	}
	put("a")
	put("bad")
	if _, err := v.Fresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := src.List()
	if len(second.Items) != 2 || second.Items[0] != "a" || second.Items[1] != "b" {
		t.Errorf("items %v, want a and b", second.Items)
	}
	src.List()
	for name, n := range compiled {
		if n != 1 {
			t.Errorf("%s compiled %d times", name, n)
		}
	}
	var joined Joined[string, string, int]
	derived := 0
	derive := func(a, b []string) int { derived++; return len(a) + len(b) }
	for _, c := range []struct {
		left *List[string]
		want int
	}{{first, 3}, {first, 3}, {second, 4}} {
		if got := joined.Get(c.left, second, derive); got != c.want {
			t.Errorf("derived %d, want %d", got, c.want)
		}
	}
	if derived != 2 {
		t.Errorf("derived %d times", derived)
	}
}
