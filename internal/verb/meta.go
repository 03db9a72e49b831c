package verb

import (
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/objectmeta"
)

// matches refuses a body with another name or namespace than the path.
func (c *Call) matches(obj object.Object) error {
	if err := objectmeta.MatchNamespace(obj, c.Namespace); err != nil {
		return err
	}
	return objectmeta.MatchName(obj, c.Name)
}

func (c *Call) validName(name string, prefix bool) []string {
	if c.Strategy() != nil && c.Strategy().ValidName != nil {
		return c.Strategy().ValidName(name, prefix)
	}
	return validation.NameIsDNSSubdomain(name, prefix)
}

func (c *Call) validateMeta(obj object.Object) field.ErrorList {
	return validation.ValidateObjectMetaAccessor(objectmeta.Access(obj), c.Resource.Namespaced, c.validName,
		field.NewPath("metadata"))
}

func (c *Call) validateMetaUpdate(obj, old object.Object) field.ErrorList {
	return validation.ValidateObjectMetaAccessorUpdate(
		objectmeta.Access(obj), objectmeta.Access(old), field.NewPath("metadata"))
}
