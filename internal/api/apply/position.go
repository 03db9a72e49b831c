package apply

import "github.com/bowsprit/bowsprit/internal/object/schema"

// position is a position in an object's schema, as seen by ownership: the possible shapes of a value, and whether it is
// granular (owned field by field) or atomic (owned as a whole). The rules equal Kubernetes' conversion of a
// definition's OpenAPI schema for structured-merge-diff (k8s.io/kube-openapi/pkg/schemaconv).
type position struct {
	node *schema.Node
	// preserve is true if unknown fields are kept here: x-kubernetes-preserve-unknown-fields applies to all
	// descendants.
	preserve bool
	// root is true where apiVersion, kind and metadata are implicit: at the top and in embedded resources.
	root bool
	// global is the initial value of preserve inside metadata: spec.preserveUnknownFields of the definition.
	global bool
}

// Undeclared values have one of these types. They are compared by address.
var (
	// deduced values are granular maps, and atomic lists and scalars.
	deduced = &schema.Node{}
	// untyped values are atomic.
	untyped = &schema.Node{}

	stringNode = &schema.Node{Type: "string"}
	timeNode   = &schema.Node{Type: "string", Format: "date-time"}
	intNode    = &schema.Node{Type: "integer"}
	boolNode   = &schema.Node{Type: "boolean"}
	stringMap  = &schema.Node{Type: "object", AdditionalProperties: stringNode}
	// metaNode is ObjectMeta.
	metaNode = &schema.Node{Type: "object", Properties: map[string]*schema.Node{
		"name": stringNode, "generateName": stringNode, "namespace": stringNode, "selfLink": stringNode,
		"uid":             stringNode,
		"resourceVersion": stringNode, "generation": intNode, "creationTimestamp": timeNode,
		"deletionTimestamp":          timeNode,
		"deletionGracePeriodSeconds": intNode, "labels": stringMap, "annotations": stringMap,
		"finalizers": {Type: "array", ListType: "set", Items: stringNode},
		"ownerReferences": {Type: "array", ListType: "map", ListMapKeys: []string{"uid"}, Items: &schema.Node{
			Type: "object", MapType: "atomic", Properties: map[string]*schema.Node{
				"apiVersion": stringNode, "kind": stringNode, "name": stringNode,
				"uid":        {Type: "string", Default: "", HasDefault: true},
				"controller": boolNode, "blockOwnerDeletion": boolNode,
			}}},
		"managedFields": {Type: "array", Items: &schema.Node{Type: "object", Properties: map[string]*schema.Node{
			"manager": stringNode, "operation": stringNode, "apiVersion": stringNode, "time": timeNode,
			"fieldsType": stringNode,
			"fieldsV1":   {Type: "object"}, "subresource": stringNode,
		}}},
	}}
)

// rootOf is the top of an object. root is nil for a version without a schema.
func rootOf(root *schema.Node, preserveUnknown bool) position {
	if root == nil {
		return position{node: deduced, preserve: preserveUnknown, global: preserveUnknown}
	}
	return position{node: root, preserve: preserveUnknown || root.PreserveUnknown, root: true, global: preserveUnknown}
}

// at returns the position of n below p. Sensitive values are atomic, because managedFields must not show the names
// inside them.
func (p position) at(n *schema.Node) position {
	if n.Sensitive {
		return position{node: untyped, global: p.global}
	}
	return position{node: n, preserve: p.preserve || n.PreserveUnknown, root: n.Embedded, global: p.global}
}

// shapes returns the possible shapes of a value here, apart from null.
func (p position) shapes() (scalar, list, object bool) {
	switch p.node.Type {
	case "":
		return true, true, true
	case "object":
		return false, false, true
	case "array":
		return false, true, false
	default:
		return true, false, false
	}
}

// atomicList and atomicMap report whether a list or map here is owned as a whole.
func (p position) atomicList() bool {
	return p.node.ListType != "set" && p.node.ListType != "map"
}

func (p position) atomicMap() bool { return p.node == untyped || p.node.MapType == "atomic" }

// implied are the fields that every object has.
func (p position) implied(name string) *schema.Node {
	if p.root {
		switch name {
		case "apiVersion", "kind":
			return stringNode
		case "metadata":
			return metaNode
		}
	}
	return nil
}

// field returns the position of a field. declared is false if the schema does not name it, ok is false if it must not
// exist.
func (p position) field(name string) (child position, declared, ok bool) {
	if p.node == deduced || p.node == untyped {
		return p, false, true
	}
	if n := p.implied(name); n != nil {
		return position{node: n, preserve: p.global, global: p.global}, true, true
	}
	if n := p.node.Properties[name]; n != nil {
		return p.at(n), true, true
	}
	child, ok = p.rest()
	return child, false, ok
}

// rest is the position of fields that the schema does not name.
func (p position) rest() (child position, ok bool) {
	switch {
	case p.node == deduced || p.node == untyped:
		return p, true
	case p.node.AdditionalProperties != nil:
		return p.at(p.node.AdditionalProperties), true
	case p.node.AllowsAdditional, p.preserve, len(p.node.Properties) == 0 && !p.root:
		return position{node: deduced, global: p.global}, true
	}
	return position{}, false
}

// item is the position of a list's items.
func (p position) item() position {
	if p.node == deduced || p.node == untyped || p.node.Items == nil {
		return position{node: untyped, global: p.global}
	}
	return p.at(p.node.Items)
}
