package oraclebuiltins

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// TestKnownKinds checks that a body is refused as of an unknown kind exactly if kube-apiserver has no Go type for the
// kind, served or not.
func TestKnownKinds(t *testing.T) {
	t.Parallel()
	const aggregator = "apiregistration.k8s.io" // TestAPIServices adds its kinds, if it runs before
	scheme := legacyscheme.Scheme.AllKnownTypes()
	actions := map[schema.GroupVersionKind]bool{}
	k := decode.NewKinds(catalog.New(kinds.Resources()...), actions)
	secret := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	known := func(kind schema.GroupVersionKind) bool {
		err := k.Unlike(kind, secret)
		return err == nil || !strings.Contains(err.Error(), "is registered for version")
	}
	versions := map[schema.GroupVersion]bool{}
	for kind := range scheme {
		if kind.Version == runtime.APIVersionInternal || kind.Group == aggregator {
			continue
		}
		versions[kind.GroupVersion()] = true
		if !known(kind) {
			t.Errorf("%s is not known", kind)
		}
	}
	for kind := range scheme { // each in each version
		for gv := range versions {
			other := gv.WithKind(kind.Kind)
			if _, ok := scheme[other]; !ok && known(other) {
				t.Errorf("%s is known", other)
			}
		}
	}
}
