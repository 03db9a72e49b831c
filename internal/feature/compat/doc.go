// Package compat compares two states of a CustomResourceDefinition and finds the changes that can break stored objects
// or clients.
//
// Compare is static: it reads the two definitions and no object. Objects checks stored objects. The classes have the
// names of crdify (sigs.k8s.io/crdify v0.5.0) where crdify has a class; test/oracle/schema compares the two. A Policy
// gives each class a level, and exempts single findings with a reason.
//
// The package is pure: definitions and objects in, findings out.
package compat

// Class is a sort of change.
type Class string

// The classes of changes of a definition. crdify has the first three.
const (
	Scope                Class = "scope"
	StoredVersionRemoval Class = "storedVersionRemoval"
	ExistingFieldRemoval Class = "existingFieldRemoval"

	DefinitionRemoval    Class = "definitionRemoval"
	Names                Class = "names"
	ServedVersionRemoval Class = "servedVersionRemoval"
	Subresources         Class = "subresources"
	SelectableFields     Class = "selectableFields"
)

// The classes of changes of a field. crdify has the first 13; the others are "unhandled" there.
const (
	Type          Class = "type"
	Enum          Class = "enum"
	Default       Class = "default"
	Required      Class = "required"
	Description   Class = "description"
	Minimum       Class = "minimum"
	Maximum       Class = "maximum"
	MinItems      Class = "minItems"
	MaxItems      Class = "maxItems"
	MinLength     Class = "minLength"
	MaxLength     Class = "maxLength"
	MinProperties Class = "minProperties"
	MaxProperties Class = "maxProperties"

	Pattern               Class = "pattern"
	Format                Class = "format"
	MultipleOf            Class = "multipleOf"
	UniqueItems           Class = "uniqueItems"
	Nullable              Class = "nullable"
	Composition           Class = "composition"
	Validations           Class = "validations"
	ListType              Class = "listType"
	MapType               Class = "mapType"
	EmbeddedResource      Class = "embeddedResource"
	PreserveUnknownFields Class = "preserveUnknownFields"
	AdditionalProperties  Class = "additionalProperties"
	// EnumAddition, NullableAddition and RequiredWithDefault are the harmless half of their classes: stored objects
	// stay valid, and clients may meet new values.
	EnumAddition        Class = "enumAddition"
	NullableAddition    Class = "nullableAddition"
	RequiredWithDefault Class = "requiredWithDefault"
	// Loosening is a constraint that is gone or allows more.
	Loosening Class = "loosening"
)

// Finding is a change.
type Finding struct {
	Class Class `json:"class"`
	// Version is a version of the definition, two served versions as in "v1beta1 -> v1", or "" for the definition.
	Version string `json:"version,omitempty"`
	// Path is the changed field of the objects, as in "spec.hosts[*].name"; "" is the object or the definition.
	Path string `json:"path,omitempty"`
	Text string `json:"text"`

	// Location is the place in the new definition, or "" if it has none.
	Location string `json:"-"`
}
