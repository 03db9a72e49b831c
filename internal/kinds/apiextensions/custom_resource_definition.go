package apiextensions

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// definitionKind is CustomResourceDefinition. Its rules are in package crd.
func definitionKind() rule.Kind {
	rules := *crd.Rules()
	rules.Cells = definitionCells
	return rule.Kind{
		Also: []*rule.Version{{
			Name: "v1beta1", Rank: 9, New: rule.NewOf[apiextensionsv1beta1.CustomResourceDefinition](),
			Strategy:   crd.BetaRules(&rules),
			Deprecated: "apiextensions.k8s.io/v1beta1 CustomResourceDefinition is deprecated in v1.16+, unavailable in v1.22+; use apiextensions.k8s.io/v1 CustomResourceDefinition",
		}},
		Convert: crd.Convert, Form: crd.Form(),
		Group: apiextensionsV1, Kind: "CustomResourceDefinition", Plural: "customresourcedefinitions",
		Short: []string{"crd", "crds"}, Categories: rule.CategoryExtensions,
		ClusterScoped: true, Status: true, Generation: true,
		Prefix:   "apiextensions.k8s.io/customresourcedefinitions",
		New:      rule.NewOf[apiextensionsv1.CustomResourceDefinition](),
		Columns:  definitionColumns(),
		Strategy: &rules,
	}
}

var apiextensionsV1 = rule.Group{Name: "apiextensions.k8s.io", Version: "v1", Priority: 16700, Rank: 15}

func definitionColumns() []catalog.Column {
	return []catalog.Column{
		rule.NameColumn(),
		{Name: "Scope", Type: "string", Description: "Cluster/Namespaced"},
		{Name: "Versions", Type: "string", Description: "Served versions"},
		rule.CreatedColumn(),
		{Name: "Group", Type: "string", Priority: 1, Description: "API group"},
		{Name: "Kind", Type: "string", Priority: 1, Description: "CustomResource kind"},
		{Name: "ShortNames", Type: "string", Priority: 1, Description: "Short names"},
		{Name: "Established", Type: "boolean", Priority: 1, Description: "Established status"},
	}
}

func definitionCells(obj object.Object, e catalog.Env) []any {
	spec := object.Map(obj, "spec")
	var versions []string
	for _, v := range object.Objects(spec["versions"]) {
		if v["served"] != true {
			continue
		}
		name := object.String(v, "name")
		if v["storage"] == true {
			name += "(storage)"
		}
		versions = append(versions, name)
	}
	slices.Sort(versions)
	established := slices.ContainsFunc(object.Objects(object.Map(obj, "status")["conditions"]),
		func(c object.Object) bool {
			return c["type"] == string(apiextensionsv1.Established) &&
				c["status"] == string(apiextensionsv1.ConditionTrue)
		})
	common := rule.NameAndCreation(obj, e)
	return []any{
		common[0], object.String(spec, "scope"), strings.Join(versions, ","), common[1], object.String(spec, "group"),
		object.String(spec, "names", "kind"), strings.Join(object.Strings(spec, "names", "shortNames"), ","),
		established,
	}
}
