package apply

import (
	"errors"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// converter converts objects for structured-merge-diff to the versions of managers.
type converter struct {
	o *Ownership
	// prepared caches results, since one change needs the same object several times.
	prepared map[preparedKey]*typed.TypedValue
}

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
	if c.o.foreign == nil {
		return c.o.typed(rename(obj, string(version)))
	}
	if converted, ok := c.prepared[preparedKey{object, version}]; ok {
		return converted, nil
	}
	converted, err := c.o.foreign.Convert([]map[string]any{obj}, string(version))
	if err != nil {
		return object, err
	}
	result, err := c.o.typed(converted[0])
	if err == nil {
		c.prepared[preparedKey{object, version}] = result
	}
	return result, err
}

func (c converter) IsMissingVersionError(err error) bool {
	return errors.As(err, new(errNoVersion))
}
