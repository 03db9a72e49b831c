package rbac

import (
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

var rbacV1 = rule.Group{Name: "rbac.authorization.k8s.io", Version: "v1", Priority: 17000, Rank: 15}

// accessRules are those of roles and bindings: their names may have colons.
func accessRules() *catalog.Strategy {
	return &catalog.Strategy{
		ValidName: rule.NameIsSegment, UnconditionalUpdate: true, CreateOnUpdate: true, Warnings: warnNotEnforced,
	}
}

// warnNotEnforced is there until RBAC authorizes: an object that is accepted and has no effect must say so.
func warnNotEnforced(object.Object, object.Object, string) []string {
	return []string{"RBAC is not enforced by this server: roles and bindings are stored and grant nothing; " +
		"members of system:masters may do everything"}
}

func bindingRules(cells func(object.Object, catalog.Env) []any) *catalog.Strategy {
	r := accessRules()
	r.Default, r.Cells = defaultSubjects, cells
	return r
}
