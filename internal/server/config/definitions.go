package config

import "cmp"

// Definitions configures the protection of stored custom objects from writes of their CustomResourceDefinition. The
// annotations bowsprit.dev/crd-change-policy and bowsprit.dev/protect-definition of a definition override it.
type Definitions struct {
	// ChangePolicy is the treatment of changes that can break clients or stored objects: "Enforce" refuses them, "Warn"
	// warns the client, "Off" checks nothing. "" means Warn.
	ChangePolicy string
	// Protect refuses the deletion of a definition with stored objects, and the removal of a version that has stored
	// objects.
	Protect bool
}

// defaultChangePolicy is the treatment of changes unless the configuration has another one.
const defaultChangePolicy = "Warn"

// changePolicies are the values of Definitions.ChangePolicy.
const changePolicies = "Enforce, Warn or Off"

func (c *Definitions) settings() []Setting {
	return []Setting{
		{
			Name: "crd-change-policy", Default: defaultChangePolicy, Value: &c.ChangePolicy, Only: Serve,
			Help: "treatment of changes of definitions that can break clients or stored objects, unless the definition " +
				"has the annotation bowsprit.dev/crd-change-policy: " + changePolicies,
		},
		{
			Name: "protect-definitions", Value: &c.Protect, Only: Serve,
			Help: "refuse the deletion of definitions with objects, and the removal of versions with stored objects, " +
				"unless the definition has the annotation bowsprit.dev/protect-definition=false",
		},
	}
}

func (c *Definitions) setDefaults() { c.ChangePolicy = cmp.Or(c.ChangePolicy, defaultChangePolicy) }

func (c *Definitions) validate(p *problems) {
	switch c.ChangePolicy {
	case "", "Enforce", "Warn", "Off":
	default:
		p.add("--crd-change-policy=%s is unknown: use %s", c.ChangePolicy, changePolicies)
	}
}
