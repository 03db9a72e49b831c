package discovery

import (
	"encoding/json"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// TestOrder: /apis lists groups as kube-apiserver 1.36.3 lists these, by the first name of an APIService of theirs.
func TestOrder(t *testing.T) {
	var resources []*catalog.Resource
	for group, versions := range map[string][]string{
		"acid.zalan.do": {"v1"}, "aaa.example.com": {"v1alpha1"}, "bbb.example.com": {"v1beta1", "v1alpha1"},
		"ccc.example.com": {"v1"}, "ddd.example.com": {"v2"}, "eee.example.com": {"v2beta1", "v1alpha1"},
		"fff.example.com": {"v10", "foo"}, "ggg.example.com": {"v2", "v1"}, "hhh.example.com": {"v10beta3"},
	} {
		r := custom(group, "things", "Thing")
		r.Versions = nil
		for _, name := range versions {
			r.Versions = append(r.Versions, &catalog.Version{Name: name, Served: true})
		}
		r.Storage = r.Versions[0]
		resources = append(resources, r)
	}
	builtin := namespaces()
	builtin.Group, builtin.GroupPriority = "zzz.k8s.io", 17000
	c := catalog.New(append(resources, builtin)...)

	var list metav1.APIGroupList
	answer := get(t, handler(), c, "/apis", "application/json")
	if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, g := range list.Groups {
		names = append(names, g.Name[:3])
	}
	if want := []string{"zzz", "fff", "aci", "ccc", "ggg", "hhh", "aaa", "bbb", "eee", "ddd"}; !slices.Equal(names,
		want) {
		t.Errorf("groups are in the order %v, expected %v", names, want)
	}
}

// TestStorageVersionHash has hashes of kube-apiserver 1.36.3.
func TestStorageVersionHash(t *testing.T) {
	v1 := &catalog.Version{Name: "v1"}
	for _, c := range []struct {
		want string
		r    catalog.Resource
	}{
		{"r2yiGXH7wu8=", catalog.Resource{Plural: "events", Kind: "Event", Prefix: "events"}},
		{"r2yiGXH7wu8=", catalog.Resource{
			Group: "events.k8s.io", Plural: "events", Kind: "Event", Prefix: "events", Secondary: true,
		}},
		{"jfWCUB31mvA=", catalog.Resource{
			Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Form: &catalog.Form{Version: "v1beta1"},
		}},
	} {
		c.r.Storage = v1
		if got := storageVersionHash(&c.r); got != c.want {
			t.Errorf("%s of %q: %s, expected %s", c.r.Kind, c.r.Group, got, c.want)
		}
	}
}
