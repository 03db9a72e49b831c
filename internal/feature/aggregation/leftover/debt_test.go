package leftover

import (
	"fmt"
	"strings"
	"testing"
)

// TestBounds adds debts with long lists and texts: a full record fits into a ConfigMap.
func TestBounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 253)
	r := Record{}
	for i := range MaxDebts {
		d := Debt{Group: long[:200] + fmt.Sprint(i), Server: Server{Service: "a/b"}, State: strings.Repeat("s", 10_000)}
		for j := range 1000 {
			d.APIServices = append(d.APIServices, fmt.Sprint(j, long))
			d.Resources = append(d.Resources, fmt.Sprint(j, long[:60]))
			d.Held = append(d.Held, fmt.Sprint(j, long))
		}
		d.bound()
		r[d.key()] = &d
	}
	size := 0
	for key, value := range r.object() {
		if len(key) > 253 {
			t.Errorf("the key %q is too long", key)
		}
		size += len(key) + len(value.(string))
	}
	if len(r) != MaxDebts || size > 1<<20 {
		t.Errorf("%d debts take %d bytes", len(r), size)
	}
}

// TestServers distinguishes servers by service, authorities and verification.
func TestServers(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{}
	for _, s := range []Server{
		NewServer("a", "b", nil, false), NewServer("a", "b", nil, true), NewServer("a", "b", []byte("x"), false),
		NewServer("a", "b", []byte("y"), false), NewServer("a", "c", nil, false), NewServer("c", "b", nil, false),
	} {
		keys[(&Debt{Group: "g", Server: s}).key()] = true
	}
	keys[(&Debt{Group: "h", Server: NewServer("a", "b", nil, false)}).key()] = true
	if len(keys) != 7 {
		t.Errorf("%d keys of 7 debts", len(keys))
	}
}

// TestAdd merges debts of two namespaces with one name: the newer uid counts, and no name is lost.
func TestAdd(t *testing.T) {
	t.Parallel()
	d := Debt{APIServices: []string{"v1.g"}, Resources: []string{"a", "b"}, NamespaceUID: "1", Held: []string{"a/x"}}
	d.add(Debt{APIServices: []string{"v2.g"}, Resources: []string{"b", "c"}, NamespaceUID: "2"})
	d.bound()
	if got := fmt.Sprintln(d.APIServices, d.Resources, d.NamespaceUID, d.Held); got != "[v1.g v2.g] [a b c] 2 []\n" {
		t.Error(got)
	}
}

// TestReadRecord skips values that are no debts.
func TestReadRecord(t *testing.T) {
	t.Parallel()
	r := readRecord(map[string]string{"a": "x", "b": "{}", "c": `{"group":"g","service":"a/b"}`})
	if len(r) != 1 || r["c"] == nil || len(r.Of("g")) != 1 || len(r.Of("h")) != 0 {
		t.Errorf("%v", r)
	}
}

// TestNamespaceOf finds the namespace of a record.
func TestNamespaceOf(t *testing.T) {
	t.Parallel()
	for in, want := range map[[2]string]string{
		{"kube-system", Name("shop")}: "shop", {"default", Name("shop")}: "", {"kube-system", "shop"}: "",
		{"kube-system", "leftovers."}: "",
	} {
		if got := NamespaceOf(in[0], in[1]); got != want {
			t.Errorf("%v: %q", in, got)
		}
	}
}
