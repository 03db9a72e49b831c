package crd

import (
	"runtime"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/test/oracle/fixture"
)

// TestHold bounds the memory of the catalog after every version of the large provider's 2,065 definitions has been
// used: 150 MB for all of them. Then it checks that the memory is released. ORACLE_STEP selects every n-th definition
// (40th), with a proportional bound.
func TestHold(t *testing.T) {
	const bound = 150e6 / 2065
	c := catalog.New()
	var resources []*catalog.Resource
	fixture.Upjet(t, fixture.Setting("ORACLE_STEP", 40), func(name string, raw []byte) bool {
		raw, err := yaml.YAMLToJSON(raw)
		if err != nil {
			t.Fatal(name, err)
		}
		def, err := crd.DecodeWithoutSchemas(raw)
		if err != nil {
			t.Fatal(name, err)
		}
		def.Status.AcceptedNames = def.Spec.Names
		r, err := crd.Resource(def, 1, func() ([]byte, error) { return raw, nil })
		if err != nil {
			t.Fatal(name, err)
		}
		resources = append(resources, r)
		return true
	})
	if len(resources) == 0 {
		t.Skip("no definitions beside the repository")
	}
	c.Update(1, resources, nil)

	before := heap()
	schemas := 0
	for _, r := range resources {
		for _, v := range r.Versions {
			if _, err := v.Schema(); err != nil {
				t.Fatal(r.Plural, err)
			}
			schemas++
		}
	}
	held := heap() - before
	t.Logf("%d definitions, %d schemas: %.1f MB, %.0f bytes per definition", len(resources), schemas, held/1e6,
		held/float64(len(resources)))
	if held > bound*float64(len(resources)) {
		t.Errorf("more than %.0f bytes per definition", bound)
	}

	if n := c.Trim(true); n != 0 {
		t.Errorf("dropped %d that have just been used", n)
	}
	if n := c.Trim(true); n != schemas {
		t.Errorf("dropped %d of %d", n, schemas)
	}
	if left := heap() - before; left > held/10 {
		t.Errorf("%.0f of %.0f bytes are still held", left, held)
	}
	runtime.KeepAlive(c)
}

// heap returns how many bytes are in use.
func heap() float64 {
	runtime.GC()
	runtime.GC() // objects that the first run finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
