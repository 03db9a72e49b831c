package apiextensions

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

// definitionKind is CustomResourceDefinition. Its rules are in package crd; it has the default columns.
func definitionKind() rule.Kind {
	rules := *crd.Rules()
	rules.Cells = rule.NameAndCreation
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
		Columns:  []catalog.Column{rule.NameColumn(), rule.CreatedColumn()},
		Strategy: &rules,
	}
}

var apiextensionsV1 = rule.Group{Name: "apiextensions.k8s.io", Version: "v1", Priority: 16700, Rank: 15}
