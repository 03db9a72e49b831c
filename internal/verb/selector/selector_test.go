package selector

import (
	"testing"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// counting counts how often all terms of a selector are looked at.
type counting struct {
	fields.Selector
	searches int
}

func (c *counting) RequiresExactMatch(field string) (string, bool) {
	c.searches++
	return c.Selector.RequiresExactMatch(field)
}

// TestManyTerms: the cost of a field selector grows as its terms do.
func TestManyTerms(t *testing.T) {
	t.Parallel()
	terms := []fields.Selector{fields.OneTermEqualSelector("metadata.namespace", "in")}
	for range 1000 {
		terms = append(terms, fields.OneTermNotEqualSelector("metadata.name", "other"))
	}
	f := &counting{Selector: fields.AndSelectors(append(terms, fields.OneTermEqualSelector("metadata.name", "one"))...)}
	pods := &catalog.Resource{Plural: "pods", Namespaced: true}
	of := Collection{Resource: pods, Version: &catalog.Version{Name: "v1"}}
	sel, err := New(of, nil, f, nil)
	if err != nil || sel.Name != "one" || sel.Namespace != "in" || len(sel.fields) != 1002 {
		t.Fatalf("%+v, %v", sel, err)
	}
	if f.searches > 2 {
		t.Errorf("the terms of the selector were searched %d times", f.searches)
	}
}
