package cel

import (
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// typedNode is a node as rules see it: at the root of a resource, apiVersion, kind and some of metadata exist whether
// the schema declares them or not.
type typedNode struct {
	node     *schema.Node
	resource bool
}

// The fields of a resource that every rule may use.
var (
	stringNode   = &schema.Node{Type: "string"}
	metadataNode = metadataUpTo(longestName, longestPrefix)
)

// The longest metadata.name, and the longest metadata.generateName, to which the server appends at least a character.
const longestName, longestPrefix = int64(validation.DNS1123SubdomainMaxLength), longestName - 1

// metadataUpTo returns the metadata that rules may use, with the maximum lengths of its fields.
func metadataUpTo(name, generateName int64) *schema.Node {
	return &schema.Node{Type: "object", Properties: map[string]*schema.Node{
		"name":         {Type: "string", MaxLength: &name},
		"generateName": {Type: "string", MaxLength: &generateName},
	}}
}

// metadataOf returns the metadata that rules may use of a resource whose schema declares metadata, or not (nil). A
// declared maximum length counts if it is shorter.
func metadataOf(declared *schema.Node) *schema.Node {
	if declared == nil {
		return metadataNode
	}
	name, generateName := longestName, longestPrefix
	for field, longest := range map[string]*int64{"name": &name, "generateName": &generateName} {
		if n := declared.Properties[field]; n != nil && n.MaxLength != nil {
			*longest = min(*longest, *n.MaxLength)
		}
	}
	if name == longestName && generateName == longestPrefix {
		return metadataNode
	}
	return metadataUpTo(name, generateName)
}

// property returns the node of a property, by its name in the object, or nil.
func (p typedNode) property(name string) *schema.Node {
	if p.resource && (name == "metadata" || name == "kind" || name == "apiVersion") && !declaresMetadata(p.node) {
		if name == "metadata" {
			return metadataOf(p.node.Properties["metadata"])
		}
		return stringNode
	}
	return p.node.Properties[name]
}

// declaresMetadata reports whether n itself has all the fields of a resource that rules may use.
func declaresMetadata(n *schema.Node) bool {
	is := func(n *schema.Node, kind string) bool { return n != nil && n.Type == kind }
	meta := n.Properties["metadata"]
	return is(n.Properties["kind"], "string") && is(n.Properties["apiVersion"], "string") && is(meta, "object") &&
		is(meta.Properties["name"], "string") && is(meta.Properties["generateName"], "string")
}

// isMap reports whether an object is a map for rules: without declared properties but with a schema for its values.
func (p typedNode) isMap() bool { return p.node.Type == "object" && p.node.AdditionalProperties != nil }

// visible reports whether rules can use values of the node. Data of unknown types is hidden, and so is every list or
// map of such data.
func visible(n *schema.Node) bool {
	switch {
	case n == nil:
		return false
	case n.IntOrString:
		return true
	}
	switch n.Type {
	case "array":
		return visible(n.Items)
	case "object":
		return n.AdditionalProperties == nil || visible(n.AdditionalProperties)
	case "string", "boolean", "number", "integer":
		return true
	}
	return false
}

// field returns the node of a field by the name that expressions use for it (escaped).
func (p typedNode) field(escaped string) (typedNode, bool) {
	if p.node.IntOrString || p.node.Type != "object" || p.isMap() {
		return typedNode{}, false
	}
	name, ok := apiservercel.Unescape(escaped)
	if !ok {
		return typedNode{}, false
	}
	if again, ok := apiservercel.Escape(name); !ok || again != escaped {
		return typedNode{}, false
	}
	return p.child(name)
}

// child is field for a name as it occurs in the object.
func (p typedNode) child(name string) (typedNode, bool) {
	n := p.property(name)
	if !visible(n) {
		return typedNode{}, false
	}
	return typedNode{n, n.Embedded}, true
}

// elem returns the node of the elements of a list or map.
func (p typedNode) elem() (typedNode, bool) {
	n := p.node.AdditionalProperties
	if p.node.Type == "array" {
		n = p.node.Items
	} else if p.node.Type != "object" {
		n = nil
	}
	if n == nil || p.node.IntOrString {
		return typedNode{}, false
	}
	return typedNode{n, n.Embedded}, true
}

// minSize returns the smallest number of bytes that a value at p can have in JSON.
func (p typedNode) minSize() int64 {
	n := p.node
	if n.IntOrString {
		return 1
	}
	switch n.Type {
	case "object":
		size := int64(2)
		if p.isMap() {
			return size
		}
		for i, name := range n.Required {
			if repeated(n.Required[:i], name) {
				continue
			}
			c := p.property(name)
			if visible(c) && c.Default == nil {
				size += int64(len(name)) + typedNode{c, c.Embedded}.minSize() + 4
			}
		}
		return size
	case "string":
		switch n.Format {
		case "duration":
			return apiservercel.MinDurationSizeJSON
		case "date":
			return apiservercel.JSONDateSize
		case "date-time":
			return apiservercel.MinDatetimeSizeJSON
		}
		return apiservercel.MinStringSize
	case "boolean":
		return apiservercel.MinBoolSize
	case "number", "integer":
		return apiservercel.MinNumberSize
	}
	return 2 // list
}

func repeated(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

// maxElements returns the largest number of elements (bytes of a string) that a value at p can have in a request.
func (p typedNode) maxElements() uint64 {
	const request = celconfig.MaxRequestSizeBytes
	n := p.node
	if n.IntOrString {
		return maxText(n, 4, request-2)
	}
	switch n.Type {
	case "array":
		if n.MaxItems != nil {
			return atLeastZero(*n.MaxItems)
		}
		e, _ := p.elem()
		return uint64((request - 2) / (e.minSize() + 1))
	case "object":
		if !p.isMap() {
			return 0
		}
		if n.MaxProps != nil {
			return atLeastZero(*n.MaxProps)
		}
		e, _ := p.elem()
		return uint64((request - 2) / (e.minSize() + 6))
	case "string":
		switch n.Format {
		case "byte":
			return maxText(n, 1, request-2)
		case "duration":
			return apiservercel.MaxDurationSizeJSON
		case "date":
			return apiservercel.JSONDateSize
		case "date-time":
			return apiservercel.MaxDatetimeSizeJSON
		}
		if n.MaxLength == nil && len(n.Enum) > 0 {
			var longest int
			for _, v := range n.Enum {
				if s, ok := v.(string); ok {
					longest = max(longest, len(s))
				}
			}
			return uint64(longest)
		}
		return maxText(n, 4, request-2)
	}
	return 0
}

// maxText returns maxLength in bytes, for characters of the given width, or otherwise if there is no maxLength.
func maxText(n *schema.Node, width uint64, otherwise int64) uint64 {
	if n.MaxLength == nil {
		return uint64(otherwise)
	}
	return atLeastZero(*n.MaxLength) * width
}

func atLeastZero(v int64) uint64 { return uint64(max(v, 0)) }

// typeSet maps names to the object types in one scope's expressions, because the type checker identifies objects by
// name. One goroutine fills it while it checks expressions.
type typeSet map[string]typedNode

// declare returns the CEL type of a visible node. name is its name if it is an object.
func (s typeSet) declare(p typedNode, name string) *types.Type {
	n := p.node
	if n.IntOrString {
		return types.DynType
	}
	switch n.Type {
	case "array":
		e, _ := p.elem()
		return types.NewListType(s.declare(e, name+".@idx"))
	case "object":
		if p.isMap() {
			e, _ := p.elem()
			return types.NewMapType(types.StringType, s.declare(e, name+".@elem"))
		}
		s[name] = p
		return types.NewObjectType(name)
	case "string":
		switch n.Format {
		case "byte":
			return types.BytesType
		case "duration":
			return types.DurationType
		case "date", "date-time":
			return types.TimestampType
		}
		return types.StringType
	case "boolean":
		return types.BoolType
	case "number":
		return types.DoubleType
	}
	return types.IntType
}

// provider provides the types of a scope to the type checker.
type provider struct {
	types.Provider // the environment's
	declared       typeSet
}

func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if _, ok := p.declared[name]; ok {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Provider.FindStructType(name)
}

func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	object, ok := p.declared[name]
	if !ok {
		return p.Provider.FindStructFieldType(name, field)
	}
	f, ok := object.field(field)
	if !ok {
		// A reserved word is a field name where nothing else is valid, see KEP-2876.
		escaped := "__" + field + "__"
		if again, isWord := apiservercel.Escape(field); !isWord || again != escaped {
			return nil, false
		}
		if f, ok = object.field(escaped); !ok {
			return nil, false
		}
		field = escaped
	}
	return &types.FieldType{Type: p.declared.declare(f, name+"."+field)}, true
}
