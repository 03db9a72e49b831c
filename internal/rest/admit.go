package rest

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
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// admissionAttributes returns what admission is told about a write of the call. options is a pointer to the
// operation's options, one of metav1.CreateOptions, UpdateOptions and DeleteOptions. name is "" if it will be
// generated.
func (s *Server) admissionAttributes(
	ctx context.Context, c *Call, op admit.Operation, name string, options any, dryRun bool,
) *admit.Attributes {
	a := &admit.Attributes{
		Operation: op, Resource: c.Resource, Version: c.Version, Subresource: c.Subresource, Kind: c.gvk(),
		Namespace: c.Namespace, Name: name, User: c.User, DryRun: dryRun,
		Options: func() admit.Object { return optionsObject(options) },
		Warn:    func(text string) { c.warn(ctx, text) },
		Convert: func(ctx context.Context, obj Object, from, to *catalog.Version) (Object, error) {
			return s.Convert.Convert(ctx, c.Resource, from, to, obj)
		},
		Normalize: func(v *catalog.Version, obj Object) error {
			in := *c
			in.Version = v
			_, err := in.normalize(obj)
			return err
		},
	}
	if c.Resource.Cohabits != (catalog.GroupResource{}) {
		s.showCohabiting(c, a)
	}
	if c.Resource.IsNamespace() {
		a.Namespace = name // as in Kubernetes: a namespace is in itself
	}
	if c.through == "scale" {
		a.Subresource, a.Kind = "scale", scaleKind
		a.Convert = func(_ context.Context, obj Object, _, _ *catalog.Version) (Object, error) { return obj, nil }
		a.Normalize = func(*catalog.Version, Object) error { return nil }
	}
	return a
}

// optionsObject returns options as a plugin sees them, with kind and apiVersion.
func optionsObject(options any) Object {
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
		return nil // they hold nothing that JSON cannot say
	}
	obj["kind"], obj["apiVersion"] = kind, metaVersion.String()
	return obj
}

// mutate lets admission change a.Object, and gives what it changed the form of a decoded object again.
func (s *Server) mutate(ctx context.Context, c *Call, a *admit.Attributes) error {
	before := managedFields(a.Object)
	if err := s.Admit.Mutate(ctx, a); err != nil {
		return err
	}
	if a.Object == nil {
		return nil
	}
	if a.Changed() && c.through == "" {
		if _, err := c.normalize(a.Object); err != nil {
			return apierrors.NewInternalError(fmt.Errorf("object after mutating admission: %w", err))
		}
	}
	// Those that a patch has brought are still there, too: as in Kubernetes it is the one write that admission sees
	// with them.
	c.dropDuplicateOwners(a.Object, func(text string) {
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

func managedFields(obj Object) any {
	meta, _ := obj["metadata"].(Object)
	return meta["managedFields"]
}

// validateAdmission asks admission about an object that is complete and valid.
func (s *Server) validateAdmission(ctx context.Context, a *admit.Attributes, obj Object) error {
	a.Object = obj
	if a.Name == "" {
		a.Name = object.String(object.Meta(obj), "name")
		defer func() { a.Name = "" }() // the next attempt generates another one
	}
	return s.Admit.Validate(ctx, a)
}

// judgeUpdate is judge for an update, whose objects admission may see through a subresource.
func (s *Server) judgeUpdate(ctx context.Context, c *Call, a *admit.Attributes, obj, old Object) (err error) {
	if c.through == "scale" {
		if obj, err = scaleObject(obj, c.Version.Scale); err != nil {
			return err
		}
		if old, err = scaleObject(old, c.Version.Scale); err != nil {
			return err
		}
	}
	a.Old = old
	return s.validateAdmission(ctx, a, obj)
}

// Read returns a stored object of a resource in one of its versions: what policies take as parameters.
func (s *Server) Read(ctx context.Context, r *catalog.Resource, v *catalog.Version, e *watchcache.Entry) (Object,
	error) {
	e, err := s.Convert.Entry(ctx, r, v, e)
	if err != nil {
		return nil, err
	}
	return s.fromEntry(&Call{Resource: r, Version: v}, e)
}
