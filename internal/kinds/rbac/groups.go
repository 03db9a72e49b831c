package rbac

import (
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

var rbacV1 = rule.Group{Name: "rbac.authorization.k8s.io", Version: "v1", Priority: 17000, Rank: 15}

// accessRules are the rules of roles and bindings: their names may have colons, and later requests are authorized by a
// completed write.
func accessRules() *catalog.Strategy {
	return &catalog.Strategy{
		ValidName: rule.NameIsSegment, UnconditionalUpdate: true, CreateOnUpdate: true, VisibleOnReturn: true,
	}
}

func bindingRules(cells func(object.Object, catalog.Env) []any) *catalog.Strategy {
	r := accessRules()
	r.Default, r.Cells = defaultSubjects, cells
	return r
}
