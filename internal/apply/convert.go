package apply

import (
	"errors"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// converter lets structured-merge-diff see an object in the version in which a manager owns its fields.
type converter struct{ o *Ownership }

var _ merge.Converter = converter{}

func (c converter) Convert(object *typed.TypedValue, version fieldpath.APIVersion) (*typed.TypedValue, error) {
	obj, ok := object.AsValue().Unstructured().(map[string]any)
	if !ok {
		return object, errors.New("not an object")
	}
	if obj["apiVersion"] == string(version) {
		return object, nil
	}
	if _, err := c.o.types(string(version)); err != nil {
		return object, err
	}
	converted, err := c.o.convert(obj, string(version))
	if err != nil {
		return object, err
	}
	return c.o.typed(converted)
}

func (c converter) IsMissingVersionError(err error) bool {
	return errors.As(err, new(errNoVersion))
}
