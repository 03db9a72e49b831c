package reshape

import (
	"fmt"
	"maps"
	"slices"

	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// differ returns the first difference between the shapes of two schemas, "" if there is none. Values of one shape fit
// both schemas, but for bounds such as enum, pattern and maximum. path is the place of the values, for the text.
func differ(a, b *schema.Node, path string) string {
	if a == b {
		return ""
	}
	at := path
	if at == "" {
		at = "it"
	}
	switch {
	case describe(a) != describe(b):
		return fmt.Sprintf("%s is %s in one and %s in the other version", at, describe(a), describe(b))
	case a.Nullable != b.Nullable:
		return at + " may be null in one version only"
	case a.PreserveUnknown != b.PreserveUnknown || a.AllowsAdditional != b.AllowsAdditional:
		return at + " may have undeclared fields in one version only"
	case a.Sensitive != b.Sensitive:
		return at + " is sensitive in one version only"
	}
	for _, name := range names(a, b) {
		below := join(path, name)
		switch x, y := a.Properties[name], b.Properties[name]; {
		case x == nil || y == nil:
			return below + " is in one version only"
		default:
			if why := differ(x, y, below); why != "" {
				return why
			}
		}
	}
	if a.Items != nil && b.Items != nil {
		if why := differ(a.Items, b.Items, path+"[]"); why != "" {
			return why
		}
	}
	if a.AdditionalProperties != nil && b.AdditionalProperties != nil {
		return differ(a.AdditionalProperties, b.AdditionalProperties, path+"[]")
	}
	return ""
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// names returns the declared fields of two schemas, sorted.
func names(a, b *schema.Node) []string {
	all := map[string]bool{}
	for _, n := range []*schema.Node{a, b} {
		if n != nil {
			for name := range n.Properties {
				all[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// describe returns a text for the type of values at n.
func describe(n *schema.Node) string {
	switch {
	case n.IntOrString:
		return "an integer or string"
	case n.Embedded:
		return "an embedded object"
	case n.AdditionalProperties != nil || n.AllowsAdditional:
		return "a map"
	case n.Type == "array":
		return "a list"
	case n.Type == "object":
		return "an object"
	case n.Type == "integer":
		return "an integer"
	case n.Type == "":
		return "of any type"
	}
	return "a " + n.Type
}

// plain reports whether n declares the fields of an object, and no value has others.
func plain(n *schema.Node) bool {
	return n.Type == "object" && !n.Embedded && n.AdditionalProperties == nil && !n.AllowsAdditional &&
		!n.PreserveUnknown
}

// sensitive reports whether n or a value below it is sensitive.
func sensitive(n *schema.Node) bool {
	if n == nil {
		return false
	}
	if n.Sensitive || sensitive(n.Items) || sensitive(n.AdditionalProperties) {
		return true
	}
	for _, child := range n.Properties {
		if sensitive(child) {
			return true
		}
	}
	return false
}
