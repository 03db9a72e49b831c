package config

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/match"
)

// AdmissionPlugin admits writes with code of the program that embeds the server: a webhook without HTTP. The server
// calls it for every write and every connection, of every kind, before the policies and webhooks that are objects. Its
// functions run in many goroutines at once. Either may be nil.
//
// An error refuses the write. The client gets an apierrors.APIStatus unchanged; any other error is the reason of a 403.
type AdmissionPlugin struct {
	// Name identifies the plugin; Admission.Disabled may contain it.
	Name string
	// Mutate may change r.Object, before the object is validated. The server calls it a second time if a webhook or a
	// policy has changed the object after it.
	Mutate func(ctx context.Context, r *AdmissionRequest) error
	// Validate receives the object in its final form, and must not change it.
	Validate func(ctx context.Context, r *AdmissionRequest) error
}

// AdmissionRequest is one write, as an AdmissionPlugin sees it.
type AdmissionRequest struct {
	// Operation is CREATE, UPDATE, DELETE, or CONNECT for pods/exec, proxies and the like.
	Operation string
	// Resource is the resource of the request. Subresource is the part below the object, such as "status", or "" for
	// the object.
	Resource    schema.GroupVersionResource
	Subresource string // of Resource
	// Kind is the kind of the objects: the resource's kind, but autoscaling/v1 Scale for the subresource scale,
	// PodExecOptions for exec, and so on.
	Kind      schema.GroupVersionKind
	Namespace string // "" for cluster-scoped objects
	// Name is empty in a deletecollection, and while a generated name is still missing.
	Name   string
	User   user.Info // the user of the request
	DryRun bool      // whether the write is not stored
	// Object is the new object, for CONNECT the options of the connection (PodExecOptions), nil for deletions. Only
	// Mutate may change it.
	Object *unstructured.Unstructured
	// OldObject is the object before, nil for creations. It must not be changed.
	OldObject *unstructured.Unstructured

	attributes *admit.Attributes
}

// Warn adds a warning to the answer, which kubectl prints.
func (r *AdmissionRequest) Warn(text string) { r.attributes.Warn(text) }

// Annotate adds an annotation for the audit log. The first value of a key stays.
func (r *AdmissionRequest) Annotate(key, value string) { r.attributes.Annotate(key, value) }

// NewAdmissionRequest returns a write for an AdmissionPlugin. obj is the object as the plugin may see or change it.
func NewAdmissionRequest(a *admit.Attributes, obj map[string]any) *AdmissionRequest {
	return &AdmissionRequest{
		Operation: string(a.Operation), Resource: match.AsRequested(a).Resource, Subresource: a.Subresource,
		Kind:      a.Kind,
		Namespace: a.Namespace, Name: a.Name, User: a.User, DryRun: a.DryRun,
		Object: orNone(obj), OldObject: orNone(a.Old), attributes: a,
	}
}

func orNone(obj map[string]any) *unstructured.Unstructured {
	if obj == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: obj}
}
