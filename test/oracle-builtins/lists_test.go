package oraclebuiltins

import (
	"fmt"
	"testing"

	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/testing/growth"
)

// TestValidationOfLists puts one to three elements, empty, equal and distinct, into each list and map of each kind, and
// expects the errors of Kubernetes' strategies for the object as a new one and as an update.
func TestValidationOfLists(t *testing.T) {
	t.Parallel()
	resources := kinds.Resources()
	kinds.Emulation{}.DropDisabled(resources, nil)
	for _, l := range growth.Lists(t, "testdata/objects.yaml", resources) {
		if l.Resource.Secondary || l.Version != l.Resource.Storage || strategies[l.Resource.Kind] == nil {
			continue
		}
		t.Run(l.Name, func(t *testing.T) {
			t.Parallel()
			c := &comparison{t: t, r: l.Resource, kind: l.Resource.Kind}
			for _, form := range growth.Forms {
				for n := 1; n <= 3; n++ {
					c.object = fmt.Sprintf("%d elements, %s", n, form)
					obj := l.Object(n, form)
					c.create(obj)
					if old := l.Object(1, growth.Equal); !older(old) {
						if was, _, ok := c.read(old); ok {
							_ = was
							c.update(obj, c.stored(old), "", strategies[c.kind])
						}
					}
				}
			}
		})
	}
}
