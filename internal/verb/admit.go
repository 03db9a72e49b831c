package verb

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/apply"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/objectmeta"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/verb/scale"
)

// admission runs the admission chain for writes.
type admission struct {
	*Reader
	chain      admit.Chain
	authorizer authz.Authorizer // nil allows everything
}

// mayCreate checks that the user of an update or apply may also create an object. The permission for the update itself
// has been checked before.
func (ad *admission) mayCreate(ctx context.Context, c *Call) error {
	if ad.authorizer == nil || c.inProcess || c.Verb == "create" {
		return nil
	}
	return authz.Require(ctx, ad.authorizer, c.User, &request.Info{
		IsResource: true, Verb: "create", Group: c.Resource.Group, Version: c.Version.Name, Namespace: c.Namespace,
		Resource: c.Resource.Plural, Name: c.Name,
	})
}

// admissionAttributes returns the admission attributes of a write. options is a pointer to the operation's options
// (metav1.CreateOptions, UpdateOptions or DeleteOptions), or nil. name is "" if it will be generated.
func (ad *admission) admissionAttributes(
	ctx context.Context, c *Call, op admit.Operation, name string, options any,
) *admit.Attributes {
	a := &admit.Attributes{
		Operation: op, Resource: c.Resource, Version: c.Version, Subresource: c.Subresource, Kind: c.Kind(),
		Namespace: c.Namespace, Name: name, User: c.User, DryRun: asksDryRun(options),
		Options: func() object.Object { return optionsObject(options) },
		Warn:    func(text string) { request.Warn(ctx, text) },
		Audit:   c.Audit,
		Convert: func(ctx context.Context, obj object.Object, from, to *catalog.Version) (object.Object, error) {
			return ad.convert.Convert(ctx, c.Resource, from, to, obj)
		},
		Normalize: func(v *catalog.Version, obj object.Object) error {
			_, err := c.In(v).normalize(obj)
			return err
		},
	}
	if c.Resource.Cohabits != (catalog.GroupResource{}) {
		ad.showCohabiting(c, a)
	}
	if c.Resource.IsNamespace() {
		a.Namespace = name // as in Kubernetes, the namespace of a namespace is its name
	}
	if c.through == "scale" {
		a.Subresource, a.Kind = "scale", scale.Kind
		a.Convert = func(_ context.Context, obj object.Object, _, _ *catalog.Version) (object.Object, error) {
			return obj, nil
		}
		a.Normalize = func(*catalog.Version, object.Object) error { return nil }
	}
	return a
}

// optionsObject returns options in the form that plugins receive, with kind and apiVersion.
func optionsObject(options any) object.Object {
	var kind string
	switch options.(type) {
	case *metav1.CreateOptions:
		kind = "CreateOptions"
	case *metav1.UpdateOptions:
		kind = "UpdateOptions"
	case *metav1.DeleteOptions:
		kind = "DeleteOptions"
	}
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(options)
	if err != nil {
		return nil // unreachable: the options always convert
	}
	obj["kind"], obj["apiVersion"] = kind, metav1.SchemeGroupVersion.String()
	return obj
}

// mutate runs the mutating plugins on a.Object and normalizes their changes like a decoded object.
func (ad *admission) mutate(ctx context.Context, c *Call, a *admit.Attributes) error {
	before := managedFields(a.Object)
	if err := ad.chain.Mutate(ctx, a); err != nil {
		return err
	}
	if a.Object == nil {
		return nil
	}
	if err := c.reform(a); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("object after mutating admission: %w", err))
	}
	// As in Kubernetes, a patch is the only write that admission receives with duplicate owners, so they are dropped
	// here.
	objectmeta.DropDuplicateOwners(a.Object, func(text string) {
		a.Warn(strings.Replace(text, "duplicate entries;", "duplicate entries after mutating admission happens;", 1))
	})
	if !a.Changed() {
		return nil
	}
	if err := apply.ValidateManagedFields((&unstructured.Unstructured{
		Object: a.Object,
	}).GetManagedFields()); err != nil {
		meta := object.Meta(a.Object)
		object.SetOrDelete(meta, "managedFields", before, before != nil)
		a.Warn(
			fmt.Sprintf(
				".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: %v", err))
	}
	return nil
}

// reform normalizes an object after admission changed it. Edits by our own plugins keep the normal form, except for
// defaults.
func (c *Call) reform(a *admit.Attributes) error {
	if !a.Changed() || c.through != "" {
		return nil
	}
	if rules := c.Strategy(); !a.Replaced() && rules != nil && rules.Decode != nil {
		if rules.Default != nil {
			rules.Default(a.Object)
		}
		return nil
	}
	_, err := c.normalize(a.Object)
	return err
}

func managedFields(obj object.Object) any {
	meta, _ := obj["metadata"].(object.Object)
	return meta["managedFields"]
}

// validateAdmission runs the validating plugins on a complete and valid object.
func (ad *admission) validateAdmission(ctx context.Context, a *admit.Attributes, obj object.Object) error {
	a.Object = obj
	if a.Name == "" {
		a.Name = object.String(object.Meta(obj), "name")
		defer func() { a.Name = "" }() // the next attempt generates another name
	}
	return ad.chain.Validate(ctx, a)
}

// validateUpdate is validateAdmission for an update. Admission may see the objects through a subresource.
func (ad *admission) validateUpdate(
	ctx context.Context, c *Call, a *admit.Attributes, obj, old object.Object,
) (err error) {
	if c.through == "scale" {
		if obj, err = scale.Object(obj, c.Version.Scale); err != nil {
			return err
		}
		if old, err = scale.Object(old, c.Version.Scale); err != nil {
			return err
		}
	}
	a.Old = old
	return ad.validateAdmission(ctx, a, obj)
}
