package crd

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/bowsprit/bowsprit/internal/object/schema"

	"github.com/bowsprit/bowsprit/internal/net/webhook"
)

// allowances is what an update may keep because the stored definition has it already: a check that was added to
// Kubernetes must not make definitions unchangeable that it had accepted before.
type allowances struct {
	beta             bool // of v1beta1: unknown fields may stay, and Kubernetes' groups need no approval
	unknownReviews   bool // conversionReviewVersions without one that the server speaks
	noSchema         bool // versions without a schema
	unknownTypes     bool
	nonStructural    bool
	unprunedDefaults bool
	nonAtomicSets    bool
	looseMapKeys     bool
	badCABundle      bool

	// rules and messageExpressions are the CEL expressions that the stored definition has.
	rules, messageExpressions map[string]bool
	// unchanged are the versions whose schema does not change.
	unchanged map[string]bool
	// manySelectable are the versions that keep more selectable fields than there may be; "" stands for all versions.
	manySelectable map[string]bool
}

// newAllowances is for new definitions. A bad CA bundle keeps them from being established, but may be stored.
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

// unchangedSchemas returns the versions whose schema is what the stored definition has for that name. If all stored
// versions share one schema, it has that for every name: a new version with the same schema is unchanged, too.
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
