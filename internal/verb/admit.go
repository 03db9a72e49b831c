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
	if ad.authorizer == nil || c.InProcess || c.Verb == "create" {
		return nil
	}
	return authz.Require(ctx, ad.authorizer, c.User, &request.Info{
		IsResource: true, Verb: "create", Group: c.Resource.Group, Version: c.Version.Name, Namespace: c.Namespace,
		Resource: c.Resource.Plural, Name: c.Name,
	})
}

// attributes returns the admission attributes of a write. options is a pointer to the operation's options
// (metav1.CreateOptions, UpdateOptions or DeleteOptions), or nil. name is "" if it will be generated.
func (ad *admission) attributes(
	ctx context.Context, c *Call, op admit.Operation, name string, options any,
) *admit.Attributes {
	a := &admit.Attributes{
		Operation: op,
		Target: admit.Target{
			Resource: c.Resource, Version: c.Version, Subresource: c.Subresource, Kind: c.Kind(),
			Namespace: c.Namespace, Name: name,
		},
		Request: admit.Request{
			User: c.User, DryRun: requestsDryRun(options), Audit: c.Audit,
			Options: func() object.Object { return optionsObject(options) },
			Warn:    func(text string) { request.Warn(ctx, text) },
		},
		Forms: admit.Forms{
			Convert: func(ctx context.Context, obj object.Object, from, to *catalog.Version) (object.Object, error) {
				return ad.Converter().Convert(ctx, c.Resource, from, to, obj)
			},
			Normalize: func(v *catalog.Version, obj object.Object) error {
				_, err := normalize(c.In(v), obj)
				return err
			},
		},
	}
	if c.Resource.Cohabits != (catalog.GroupResource{}) {
		ad.showCohabiting(c, a)
	}
	if c.Resource.IsNamespace() {
		a.Namespace = name // as in Kubernetes, the namespace of a namespace is its name
	}
	return a
}

// attributesOf is admission.attributes for the write: of the object, or of its Scale.
func (w *write) attributesOf(ctx context.Context, op admit.Operation, name string, options any) *admit.Attributes {
	a := w.admission.attributes(ctx, w.call, op, name, options)
	if w.scale {
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
func (w *write) mutate(ctx context.Context, a *admit.Attributes) error {
	before := managedFields(a.Object)
	if err := w.admission.chain.Mutate(ctx, a); err != nil {
		return err
	}
	if a.Object == nil {
		return nil
	}
	if err := w.reform(a); err != nil {
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
func (w *write) reform(a *admit.Attributes) error {
	if !a.Changed() || w.scale {
		return nil
	}
	if rules := w.call.Strategy(); !a.Replaced() && rules != nil && rules.Decode != nil {
		if rules.Default != nil {
			rules.Default(a.Object)
		}
		return nil
	}
	_, err := normalize(w.call, a.Object)
	return err
}

func managedFields(obj object.Object) any {
	meta, _ := obj["metadata"].(object.Object)
	return meta["managedFields"]
}

// validate runs the validating plugins on a complete and valid object.
func (ad *admission) validate(ctx context.Context, a *admit.Attributes, obj object.Object) error {
	a.Object = obj
	if a.Name == "" {
		a.Name = object.String(object.Meta(obj), "name")
		defer func() { a.Name = "" }() // the next attempt generates another name
	}
	return ad.chain.Validate(ctx, a)
}

// admitValid runs the validating plugins on a complete and valid update. Admission may receive the object's Scale.
func (w *write) admitValid(ctx context.Context) (err error) {
	obj, old := w.obj, w.old
	if w.scale {
		if obj, err = scale.Object(obj, w.call.Version.Scale); err != nil {
			return err
		}
		if old, err = scale.Object(old, w.call.Version.Scale); err != nil {
			return err
		}
	}
	w.attributes.Old = old
	return w.admission.validate(ctx, w.attributes, obj)
}
