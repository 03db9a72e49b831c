package verb

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/secrecy"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request"
)

// validateObject returns all validation errors of a new object in the call's version. If ctx ends early, it returns
// ctx's error.
func validateObject(ctx context.Context, c *Call, obj object.Object) (field.ErrorList, error) {
	if errs := validateType(c, obj); len(errs) > 0 {
		return errs, nil
	}
	rules := c.Strategy()
	if rules != nil && rules.MetadataLast {
		if errs := rules.Validate(ctx, obj); len(errs) > 0 {
			return errs, ctx.Err()
		}
		return validateMeta(c, obj), ctx.Err()
	}
	errs := validateMeta(c, obj)
	if rules != nil && rules.Validate != nil {
		return append(errs, rules.Validate(ctx, obj)...), ctx.Err()
	}
	sch, err := c.Version.Schema()
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if sch == nil {
		return errs, nil
	}
	return sch.ValidateAfter(ctx, errs, obj, nil, nil)
}

// validateUpdate returns the validation errors of an update; old errors in unchanged fields pass. Its second result is
// as in validateObject.
func validateUpdate(ctx context.Context, c *Call, obj, old object.Object) (field.ErrorList, error) {
	if errs := validateType(c, obj); len(errs) > 0 {
		return errs, nil
	}
	errs := validateMeta(c, obj)
	errs = append(errs, validateMetaUpdate(obj, old)...)
	if rules := c.Strategy(); rules != nil && rules.ValidateUpdate != nil {
		return unique(append(errs, rules.ValidateUpdate(ctx, obj, old, c.Subresource)...)), ctx.Err()
	}
	sch, err := c.Version.Schema()
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	switch {
	case sch == nil:
	case c.Subresource == "status":
		errs, err = sch.ValidateStatus(ctx, errs, obj, old, secrecy.Warner(ctx, c.Version))
	default:
		errs, err = sch.ValidateAfter(ctx, errs, obj, old, secrecy.Warner(ctx, c.Version))
	}
	if err != nil {
		return nil, err
	}
	return unique(errs), nil
}

// validateIn returns the object's violations of rules that its namespace sets, as the namespace is now.
func (v *Verbs) validateIn(ctx context.Context, c *Call, obj, old object.Object) field.ErrorList {
	rules := c.Strategy()
	if rules == nil || rules.ValidateIn == nil {
		return nil
	}
	return rules.ValidateIn(obj, old, c.Subresource, func() (map[string]string, error) {
		if _, err := v.View().Fresh(ctx); err != nil {
			return nil, err
		}
		ns := v.View().Collection("namespaces").Snapshot().Get("", c.Namespace)
		if ns == nil {
			return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, c.Namespace)
		}
		return ns.Labels, nil
	})
}

// unique drops duplicate errors: metadata is validated both as an object and as an update.
func unique(errs field.ErrorList) field.ErrorList {
	seen := make(map[string]bool, len(errs))
	return slices.DeleteFunc(errs, func(e *field.Error) bool {
		text := e.Error()
		dup := seen[text]
		seen[text] = true
		return dup
	})
}

func validateType(c *Call, obj object.Object) (errs field.ErrorList) {
	if kind := object.String(obj, "kind"); kind != c.Resource.Kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), kind, "must be "+c.Resource.Kind))
	}
	if v := object.String(obj, "apiVersion"); v != c.APIVersion() {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), v, "must be "+c.APIVersion()))
	}
	return errs
}

// warnUnwise warns the client about valid but unwise values.
func warnUnwise(ctx context.Context, c *Call, obj, old object.Object) {
	if rules := c.Strategy(); rules != nil && rules.Warnings != nil {
		for _, text := range rules.Warnings(obj, old, c.Subresource) {
			request.Warn(ctx, text)
		}
	}
	if !c.Resource.Custom() {
		return
	}
	for _, text := range c.Version.DeprecatedFields().Warnings(obj, old) {
		request.Warn(ctx, text)
	}
	had := sets.New(object.Finalizers(old)...)
	for _, f := range object.Finalizers(obj) {
		if !had.Has(f) {
			warnFinalizer(ctx, f)
		}
	}
}

func warnFinalizer(ctx context.Context, name string) {
	for _, why := range validation.IsQualifiedName(name) {
		request.Warn(ctx, fmt.Sprintf("metadata.finalizers: %q: %s", name, why))
	}
	standard := name == metav1.FinalizerOrphanDependents || name == metav1.FinalizerDeleteDependents ||
		name == "kubernetes"
	switch {
	case strings.Contains(name, "/") || standard:
	case strings.Contains(name, "."):
		request.Warn(ctx,
			fmt.Sprintf(
				"metadata.finalizers: %q: prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers", name))
	default:
		request.Warn(ctx,
			fmt.Sprintf(
				"metadata.finalizers: %q: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers", name))
	}
}
