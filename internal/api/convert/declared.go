package convert

import (
	"context"
	"fmt"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// change converts objs to version to by the rules of the definition, a function or a webhook. It returns as many
// objects and errors as objs; where there is an error, the object is nil. objs are not changed.
func (c *Converter) change(
	ctx context.Context, r *catalog.Resource, to *catalog.Version, objs []object.Object,
) ([]object.Object, []error) {
	if !c.declared(r) {
		return c.call(ctx, r, r.APIVersion(to), objs)
	}
	copies := make([]object.Object, len(objs))
	for i, obj := range objs {
		copies[i] = codec.CloneObject(obj)
	}
	return c.changeOwn(ctx, r, to, copies)
}

// changeOwn is change for objects that it may change.
func (c *Converter) changeOwn(
	ctx context.Context, r *catalog.Resource, to *catalog.Version, objs []object.Object,
) (out []object.Object, errs []error) {
	if !c.declared(r) {
		return c.call(ctx, r, r.APIVersion(to), objs)
	}
	out, errs = make([]object.Object, len(objs)), make([]error, len(objs))
	for i, obj := range objs {
		if errs[i] = ctx.Err(); errs[i] != nil {
			continue
		}
		if errs[i] = declare(r, to, obj); errs[i] == nil {
			out[i] = obj
		}
	}
	return out, errs
}

// declared reports whether the rules of the definition convert objects of r. A function of the program precedes them.
func (c *Converter) declared(r *catalog.Resource) bool {
	return r.Declared != nil && c.function(r) == nil
}

// declare converts obj in place by the rules of the definition. The error names the object.
func declare(r *catalog.Resource, to *catalog.Version, obj object.Object) error {
	from := storedIn(r, obj["apiVersion"])
	if from == nil {
		return fmt.Errorf("request to convert CR from an invalid group/version: %v", obj["apiVersion"])
	}
	if err := r.Declared(from, to, obj); err != nil {
		name := object.String(obj, "metadata", "name")
		if namespace := object.String(obj, "metadata", "namespace"); namespace != "" {
			name = namespace + "/" + name
		}
		return fmt.Errorf("conversion of %s %s by the rules of its definition: %w", r.Qualified(), name, err)
	}
	obj["apiVersion"] = r.APIVersion(to)
	return nil
}
