package verb

import (
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/objectmeta"
)

// matches refuses a body with another name or namespace than the path.
func matches(c *Call, obj object.Object) error {
	if err := objectmeta.MatchNamespace(obj, c.Namespace); err != nil {
		return err
	}
	return objectmeta.MatchName(obj, c.Name)
}

func validName(c *Call) validation.ValidateNameFunc {
	if rules := c.Strategy(); rules != nil && rules.ValidName != nil {
		return rules.ValidName
	}
	return validation.NameIsDNSSubdomain
}

func validateMeta(c *Call, obj object.Object) field.ErrorList {
	return validation.ValidateObjectMetaAccessor(objectmeta.Access(obj), c.Resource.Namespaced, validName(c),
		field.NewPath("metadata"))
}

func validateMetaUpdate(obj, old object.Object) field.ErrorList {
	return validation.ValidateObjectMetaAccessorUpdate(
		objectmeta.Access(obj), objectmeta.Access(old), field.NewPath("metadata"))
}
