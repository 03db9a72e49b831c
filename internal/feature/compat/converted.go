package compat

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit/internal/api/reshape"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// manner is the way in which a server converts the objects of a definition.
type manner int

const (
	notConverted manner = iota // only apiVersion changes
	byWebhook
	byRules
)

func mannerOf(def *apiextensionsv1.CustomResourceDefinition) manner {
	switch c := def.Spec.Conversion; {
	case def.Annotations[reshape.Annotation] != "":
		return byRules
	case c != nil && c.Strategy == apiextensionsv1.WebhookConverter:
		return byWebhook
	}
	return notConverted
}

// Converted checks the stored objects against a change that ends their conversion. It is not safe for concurrent use.
type Converted struct {
	versions []*Objects // for conversion None: the served versions, each with its compiled schema
	stash    *Objects   // for removed rules: the values that only rules restore
}

// NewConverted returns a check of the stored objects, nil unless the change removes rules or a webhook. Other changes
// of the conversion need none: package reshape proves new rules, and the results of a new webhook are unknown.
func NewConverted(was, is *apiextensionsv1.CustomResourceDefinition) *Converted {
	before, after := mannerOf(was), mannerOf(is)
	c := &Converted{}
	if before == byRules && after != byRules {
		c.stash = &Objects{}
	}
	if before != notConverted && after == notConverted {
		for i := range is.Spec.Versions {
			if v := &is.Spec.Versions[i]; v.Served {
				c.versions = append(c.versions, &Objects{
					version: v.Name, states: [2]*apiextensionsv1.CustomResourceDefinition{is, is},
				})
			}
		}
	}
	if c.stash == nil && c.versions == nil {
		return nil
	}
	return c
}

// HideValues makes the findings name objects and fields without their values.
func (c *Converted) HideValues() {
	for _, o := range c.versions {
		o.HideValues()
	}
}

// Check checks an object as it is stored, decoded JSON with int64 for whole numbers. It does not change the object. The
// error is about the schemas.
func (c *Converted) Check(namespace, name string, obj object.Object) error {
	if c.stash != nil {
		c.stash.checked++
		if object.String(obj, "metadata", "annotations", reshape.Stash) != "" {
			c.stash.pruned.add(namespace, name, "loses the values of other versions in the annotation "+reshape.Stash)
		}
	}
	stored := object.String(obj, "apiVersion")
	for _, o := range c.versions {
		apiVersion := o.states[1].Spec.Group + "/" + o.version
		if apiVersion == stored {
			o.checked++
			continue
		}
		shown := codec.CloneObject(obj)
		shown["apiVersion"] = apiVersion
		if err := o.check(namespace, name, shown, true); err != nil {
			return fmt.Errorf("without conversion: %w", err)
		}
	}
	return nil
}

// Findings returns the findings about the checked objects.
func (c *Converted) Findings() (found []Finding) {
	if c.stash != nil {
		found = c.stash.Findings()
	}
	for _, o := range c.versions {
		found = append(found, o.Findings()...)
	}
	return found
}
