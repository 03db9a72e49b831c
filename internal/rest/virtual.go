package rest

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

// Answer says what a POST to a virtual resource gets: an object of the same kind that is not stored, a review with its
// status. obj is what the client sent, decoded, defaulted and changed by admission; it belongs to the answer. When it
// has found nothing wrong with it, and before it does anything, it asks judge: admission's verdict about the object.
// For a subresource Call.Name and Call.Namespace are those of the object that it stands below.
type Answer func(ctx context.Context, c *Call, obj Object, judge func(Object) error) (Object, error)

// serveVirtual answers a POST to a resource or a subresource whose objects are not stored. It is serveCreate without
// what comes after admission.
func (s *Server) serveVirtual(w http.ResponseWriter, r *http.Request, c *Call) error {
	of := *c // the call as it would be for a resource of the virtual kind
	answer := s.Answers[c.Resource.Qualified()]
	if c.Subresource != "" {
		answer = s.Answers[c.Resource.Qualified()+"/"+c.Subresource]
		of.Resource = c.Resource.Subresource(c.Subresource).Virtual
		of.Version, of.Subresource = of.Resource.Storage, ""
	}
	if answer == nil {
		return notServed()
	}
	media, err := of.negotiate(r)
	if err != nil {
		return err
	}
	body, err := readBody(r)
	if err != nil {
		return err
	}
	options, err := createOptions(r)
	if err != nil {
		return err
	}
	obj, err := s.decode(r.Context(), &of, body, r.Header.Get("Content-Type"), fieldValidation(options.FieldValidation))
	if err != nil {
		return err
	}
	if err := matchNamespace(obj, c.Namespace); err != nil {
		return err
	}
	if c.Subresource == "" { // below an object its metadata may say which one is meant
		wipeSystemFields(object.Meta(obj))
	}
	by := of
	by.Subresource = c.Subresource
	own, err := s.ownership(r.Context(), &by)
	if err != nil {
		return err
	}
	s.track(own, nil, obj, c.manager(options.FieldManager))
	a := s.askedVirtual(r.Context(), c, &of, options, obj)
	if err := s.Admit.Mutate(r.Context(), a); err != nil {
		return err
	}
	out, err := answer(r.Context(), c, a.Object, func(obj Object) error {
		obj["apiVersion"], obj["kind"] = of.apiVersion(), of.Resource.Kind
		a.Object = obj
		return s.Admit.Validate(r.Context(), a)
	})
	if err != nil {
		return err
	}
	out["apiVersion"], out["kind"] = of.apiVersion(), of.Resource.Kind
	return s.writeObject(w, r, http.StatusCreated, &of, &Result{Object: out}, media)
}

// askedVirtual is what admission is asked about obj, which is of the kind of call of, as a write to c.
func (s *Server) askedVirtual(ctx context.Context, c, of *Call, o *metav1.CreateOptions, obj Object) *admit.Attributes {
	a := s.admissionAttributes(ctx, c, admit.Create, named(c, obj), o, isDryRun(o.DryRun))
	a.Kind, a.Object = of.gvk(), obj
	if c.Subresource != "" {
		a.Convert = func(_ context.Context, obj Object, _, _ *catalog.Version) (Object, error) { return obj, nil }
		a.Normalize = func(_ *catalog.Version, obj Object) error { _, err := of.normalize(obj); return err }
	}
	return a
}

// named returns the name under which admission is asked about a POST of obj: that of the path, or else the object's
// own.
func named(c *Call, obj Object) string {
	if c.Name != "" {
		return c.Name
	}
	return object.String(object.Meta(obj), "name")
}
