package kinds

import (
	"slices"
	"testing"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// TestRemovedVersions checks that objects of removed versions are unreadable, and that their resources still exist.
func TestRemovedVersions(t *testing.T) {
	t.Parallel()
	resources := Resources()
	for _, one := range RemovedVersions() {
		if Readable(one.APIVersion()) {
			t.Errorf("%s is readable", one.APIVersion())
		}
		for _, plural := range one.Plurals {
			if !slices.ContainsFunc(resources, func(r *catalog.Resource) bool {
				return r.Group == one.Group && r.Plural == plural && r.Version(one.Version) == nil
			}) {
				t.Errorf("%s of %s: no such resource, or it still has the version", plural, one.Group)
			}
		}
	}
}

// TestReadable checks that objects in all versions of built-in kinds, and in all forms in which they are stored, can be
// read, and objects of unknown versions of Kubernetes' groups cannot.
func TestReadable(t *testing.T) {
	t.Parallel()
	for _, r := range Resources() {
		for _, v := range r.Versions {
			if !Readable(r.APIVersion(v)) {
				t.Errorf("%s %s is unreadable", r.APIVersion(v), r.Kind)
			}
		}
		if r.Form != nil && r.Form.Version != "" && !Readable(r.Group+"/"+r.Form.Version) {
			t.Errorf("%s, stored in version %s, is unreadable", r.Qualified(), r.Form.Version)
		}
	}
	for apiVersion, want := range map[string]bool{
		"v1": true, "v2": false, "apps/v1beta2": true, "apps/v2": false, "extensions/v1beta1": true,
		"scheduling.k8s.io/v1alpha1": false, "example.com/v1": true, "metrics.k8s.io/v1beta1": true, "": false,
	} {
		if got := Readable(apiVersion); got != want {
			t.Errorf("%q: %v, want %v", apiVersion, got, want)
		}
	}
}
