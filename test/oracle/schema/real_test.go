package schema

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/test/oracle/fixture"
)

// TestReal compares ours with upstream on the definitions of well-known projects and random objects near them.
// ORACLE_REAL is the number of objects for each version, 6 by default.
func TestReal(t *testing.T) {
	count := fixture.Setting("ORACLE_REAL", 6)
	for i, d := range fixture.Definitions(t) {
		for _, v := range d.Spec.Versions {
			t.Run(d.Name+"/"+v.Name, func(t *testing.T) {
				t.Parallel()
				if v.Schema == nil {
					t.Skip("no schema")
				}
				up, err := newUpstream(v.Schema.OpenAPIV3Schema, false)
				if err != nil {
					t.Fatal(err)
				}
				our, err := schema.Compile(v.Schema.OpenAPIV3Schema, schema.Options{})
				if err != nil {
					t.Fatal(err)
				}
				g := &generator{Rand: rand.New(rand.NewPCG(7, uint64(i)))}
				for n := range count {
					g.wild = g.IntN(4)
					c := &comparison{
						T: t, props: v.Schema.OpenAPIV3Schema, name: fmt.Sprintf("object %d", n), up: up, our: our,
					}
					c.object(g)
				}
			})
		}
	}
}
