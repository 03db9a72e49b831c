package connect

import (
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// served is a discovery client of some groups, which returns their resources in a random order as client-go does.
type served struct {
	discovery.DiscoveryInterface
}

func (served) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	var groups []*metav1.APIGroup
	var lists []*metav1.APIResourceList
	for _, g := range []struct {
		group, version string
		resource       metav1.APIResource
	}{
		{"apps", "v1", metav1.APIResource{Name: "deployments", SingularName: "deployment", Kind: "Deployment",
			ShortNames: []string{"deploy"}, Namespaced: true}},
		{"", "v1", metav1.APIResource{Name: "pods", SingularName: "pod", Kind: "Pod", ShortNames: []string{"po"},
			Namespaced: true}},
		{"autoscaling", "v2", metav1.APIResource{Name: "scalers", Kind: "Scaler"}},
		{"autoscaling", "v1", metav1.APIResource{Name: "scalers", Kind: "Scaler"}},
		{"example.com", "v1", metav1.APIResource{Name: "scalers", Kind: "Scaler"}},
		{"metrics.k8s.io", "v1beta1", metav1.APIResource{Name: "pods", SingularName: "pod", Kind: "PodMetrics",
			Namespaced: true}},
	} {
		gv := metav1.GroupVersion{Group: g.group, Version: g.version}.String()
		version := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: g.version}
		if last := len(groups) - 1; last >= 0 && groups[last].Name == g.group {
			groups[last].Versions = append(groups[last].Versions, version)
		} else {
			groups = append(groups, &metav1.APIGroup{
				Name: g.group, Versions: []metav1.GroupVersionForDiscovery{version}})
		}
		lists = append(lists, &metav1.APIResourceList{GroupVersion: gv, APIResources: []metav1.APIResource{g.resource}})
	}
	rand.Shuffle(len(lists), func(i, j int) { lists[i], lists[j] = lists[j], lists[i] })
	return groups, lists, nil
}

// TestFindResource checks that a word means the resource of the core group, or else of the first group, whatever the
// order of the responses is.
func TestFindResource(t *testing.T) {
	t.Parallel()
	for word, want := range map[string][]string{
		"pods": {"", "pods", ""}, "po": {"", "pods", ""}, "Pod": {"", "pods", ""}, "pods/log": {"", "pods", "log"},
		"PodMetrics": {"metrics.k8s.io", "pods", ""}, "pods.metrics.k8s.io": {"metrics.k8s.io", "pods", ""},
		"pods.v1beta1.metrics.k8s.io": {"metrics.k8s.io", "pods", ""},
		"deploy":                      {"apps", "deployments", ""}, "scaler": {"autoscaling", "scalers", ""},
		"scalers.example.com": {"example.com", "scalers", ""},
	} {
		for range 20 {
			a, _, known, err := FindResource(served{}, word)
			if err != nil || !known || !slices.Equal([]string{a.Group, a.Resource, a.Subresource}, want) {
				t.Fatalf("%s: %v %v %v, want %q", word, a, known, err, want)
			}
		}
	}
	if a, namespaced, known, err := FindResource(served{}, "ships.sea"); err != nil || known || !namespaced ||
		a.Resource != "ships" || a.Group != "sea" {
		t.Errorf("an unknown resource: %v %v %v", a, known, err)
	}
}
