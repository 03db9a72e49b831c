package crd

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/bowsprit/bowsprit/internal/object/schema"

	"github.com/bowsprit/bowsprit/internal/net/webhook"
)

// allowances holds the violations that an update may keep because the stored definition has them already: a check added
// to Kubernetes later must not make accepted definitions unchangeable.
type allowances struct {
	beta             bool // for v1beta1: unknown fields may stay, and Kubernetes' groups need no approval
	unknownReviews   bool // conversionReviewVersions without a supported version
	noSchema         bool // versions without a schema
	unknownTypes     bool
	nonStructural    bool
	unprunedDefaults bool
	nonAtomicSets    bool
	looseMapKeys     bool
	badCABundle      bool

	// rules and messageExpressions are the CEL expressions that the stored definition has.
	rules, messageExpressions map[string]bool
	// unchanged holds the versions with an unchanged schema.
	unchanged map[string]bool
	// manySelectable holds the versions with more selectable fields than allowed; "" stands for all versions.
	manySelectable map[string]bool
}

// newAllowances returns the allowances for new definitions. A definition with a bad CA bundle may be stored, but is not
// established.
func newAllowances() allowances { return allowances{badCABundle: true} }

func allowancesOf(a *hoisted, old *apiextensionsv1.CustomResourceDefinition, was *hoisted) allowances {
	l := allowances{
		badCABundle: !isTrue(old, apiextensionsv1.Established) || badConversionCA(old),
		noSchema:    !allSchemas(was),
		unknownTypes: was.hasSchema(func(p *apiextensionsv1.JSONSchemaProps) bool {
			return schema.HasUnknownType(p)
		}),
		nonAtomicSets:      was.hasSchema(schema.HasNonAtomicSet),
		looseMapKeys:       was.hasSchema(schema.HasLooseMapKeys),
		unprunedDefaults:   slices.ContainsFunc(was.schemas(), schema.HasUnprunedDefault),
		nonStructural:      slices.ContainsFunc(was.schemas(), nonStructural),
		rules:              map[string]bool{},
		messageExpressions: map[string]bool{},
		unchanged:          unchangedSchemas(a, was),
		manySelectable:     manySelectable(a, was),
	}
	if c := old.Spec.Conversion; c != nil && c.Webhook != nil {
		reviews := c.Webhook.ConversionReviewVersions
		l.unknownReviews = len(reviews) > 0 && !slices.ContainsFunc(reviews, webhook.KnownReview)
	}
	was.hasSchema(func(p *apiextensionsv1.JSONSchemaProps) bool {
		for _, r := range p.XValidations {
			l.rules[r.Rule] = true
			if r.MessageExpression != "" {
				l.messageExpressions[r.MessageExpression] = true
			}
		}
		return false
	})
	return l
}

// schemas returns the distinct schemas of a definition.
func (a *hoisted) schemas() (all []*apiextensionsv1.JSONSchemaProps) {
	if top := a.topSchema(); top != nil {
		all = append(all, top)
	}
	for i := range a.versions {
		if s := schemaOf(&a.versions[i]); s != nil {
			all = append(all, s)
		}
	}
	return all
}

func allSchemas(a *hoisted) bool {
	return a.topSchema() != nil ||
		!slices.ContainsFunc(a.versions,
			func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return schemaOf(&v) == nil })
}

func nonStructural(p *apiextensionsv1.JSONSchemaProps) bool {
	return schema.CheckSupported(p) != nil || len(schema.CheckStructural(p, nil)) > 0
}

// unchangedSchemas returns the versions with the same schema as in the stored definition. If all stored versions share
// one schema, a new version with that schema is unchanged, too.
func unchangedSchemas(a, was *hoisted) map[string]bool {
	names := map[string]bool{}
	for _, v := range a.Versions {
		now, _ := a.validationOf(v.Name)
		before, ok := was.validationOf(v.Name)
		if ok && sameValidation(now, before) {
			names[v.Name] = true
		}
	}
	return names
}

func manySelectable(a, was *hoisted) map[string]bool {
	names := map[string]bool{}
	if len(was.selectable) > maxSelectableFields && equality.Semantic.DeepEqual(a.selectable, was.selectable) {
		names[""] = true
	}
	for _, v := range a.versions {
		for _, o := range was.versions {
			if o.Name == v.Name && len(o.SelectableFields) > maxSelectableFields &&
				equality.Semantic.DeepEqual(v.SelectableFields, o.SelectableFields) {
				names[v.Name] = true
			}
		}
	}
	return names
}
