package oraclebuiltins

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/testing/growth"
)

// TestValidationOfLists puts one to three elements, empty, equal and distinct, into each list and map of each kind, and
// expects the errors of Kubernetes' strategies for the new object.
func TestValidationOfLists(t *testing.T) {
	t.Parallel()
	resources := kinds.Resources()
	kinds.Emulation{}.DropDisabled(resources, nil)
	for _, l := range growth.Lists(t, "testdata/objects.yaml", resources) {
		if l.Resource.Secondary || l.Version != l.Resource.Storage || strategies[l.Resource.Kind] == nil ||
			strings.HasPrefix(l.Name, "v1.Capabilities.") { // privileged, which kube-apiserver allows by a flag
			continue
		}
		t.Run(l.Name, func(t *testing.T) {
			t.Parallel()
			c := &comparison{t: t, r: l.Resource, kind: l.Resource.Kind}
			for _, form := range growth.Forms {
				for n := 1; n <= 3; n++ {
					c.object = fmt.Sprintf("%d elements, %s", n, form)
					c.create(l.Object(n, form))
				}
			}
		})
	}
}
