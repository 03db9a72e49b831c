// Package admit decides whether a write may happen, and may change it on the way.
//
// It runs around validation on the path of a write. Before it, Chain.Mutate calls every mutating plugin in Kubernetes'
// order, and calls them again if a later one has changed an object that an earlier one has seen. After it, when the
// object has its final form, Chain.Validate calls every validating plugin. The client gets the first refusal.
//
// Attributes describe one write; they belong to one goroutine, except for Annotate and Warn. Plugins are safe for
// concurrent use. Kubernetes' plugins are Lifecycle, Topology and the plugins in the packages below this one: plugin
// (each for a few built-in kinds), policy (CEL policies) and hook (webhooks). Package match selects the writes of
// policies and webhooks, and expr runs their expressions.
package admit

import (
	"context"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request"
)

// Object is decoded JSON: map[string]any, []any, string, bool, int64, float64, nil.
type Object = object.Object

// Operation is the effect of a request on an object.
type Operation string

// Operations.
const (
	Create Operation = "CREATE"
	Update Operation = "UPDATE"
	Delete Operation = "DELETE"
	// Connect opens a connection to the thing behind an object: a container, a node. Object holds the options
	// (PodExecOptions), made from the query.
	Connect Operation = "CONNECT"
)

// Attributes describe a write. All fields except Object and Name keep their values through the whole chain.
type Attributes struct {
	Operation Operation
	Target
	Request
	Forms
	// Object is the new object, nil for deletions. Validators must not change it. Old is the previous object, nil for
	// creations, and read only.
	Object, Old Object

	// Sequence is set by a validator that requires the write to be ordered with others. Nil for nearly all writes.
	Sequence *Sequence

	changed, replaced bool
	round             round

	mu          sync.Mutex
	annotations map[string]string
}

// Target is the object of a write as rules and plugins match it.
type Target struct {
	Resource    *catalog.Resource
	Version     *catalog.Version // version of the request, and of Object and Old
	Subresource string
	// Kind is the kind of Object and Old: the resource's, or autoscaling/v1 Scale for /scale.
	Kind schema.GroupVersionKind
	// Namespace is the object's own name for the kind Namespace, as in Kubernetes, and "" for other cluster-scoped
	// kinds.
	Namespace string
	// Name is "" before a name has been generated, and for the objects of a deletecollection.
	Name string
}

// Request is the request behind a write.
type Request struct {
	User   user.Info
	DryRun bool
	// Options returns the CreateOptions, UpdateOptions or DeleteOptions of the operation, with kind and apiVersion. A
	// patch has the options of the resulting update or create. It returns a new object at each call. It is nil for
	// Connect.
	Options func() Object
	// Warn receives warnings for the client, from any goroutine. Never nil.
	Warn func(string)
	// Audit also receives the annotations; nil if the request is not recorded.
	Audit request.Record
}

// Forms bring the objects of a write into the versions that plugins request.
type Forms struct {
	// Cohabits is another resource that serves the same objects. Convert converts them to its version CohabitsVersion.
	// It is nil for nearly all kinds.
	Cohabits        *catalog.Resource
	CohabitsVersion *catalog.Version
	// Convert converts an object between Version and another version of the resource or its twin. obj is not changed;
	// the result may share parts of it. It is nil if the resource has one version only.
	Convert func(ctx context.Context, obj Object, from, to *catalog.Version) (Object, error)
	// Normalize normalizes an object of version v that a mutator has changed, in place: it sets defaults and, for
	// built-in kinds, the form of their Go type.
	Normalize func(v *catalog.Version, obj Object) error
}

// Sequence serializes the writes with one name, also between replicas: a validator's comparison with all existing
// objects still holds when the object is stored.
type Sequence struct {
	Name string
	// Seen is the revision up to which the validator has seen all writes of the name.
	Seen int64
	// Again repeats the validation, if another replica has written since Seen. It returns the new Seen.
	Again func(ctx context.Context) (seen int64, err error)
	// End is called after the write, or if there is none.
	End func()
}

// EndSequence ends the sequence after the write, or if there is none.
func (a *Attributes) EndSequence() {
	if s := a.Sequence; s != nil {
		a.Sequence = nil
		s.End()
	}
}

// Replace sets Object to obj, which may be Object itself after a change, and marks it as changed. obj must not share
// changed parts with Old, and need not be normalized.
func (a *Attributes) Replace(obj Object) { a.Object, a.changed, a.replaced = obj, true, true }

// Edit replaces Object by a copy in which the maps along path are copies, too (created if missing), and returns the
// last of them for changes. Everything below is still shared with the previous Object. The caller keeps the object
// normalized: no empty maps, only values of decoded JSON.
func (a *Attributes) Edit(path ...string) Object {
	obj := maps.Clone(a.Object)
	at := obj
	for _, name := range path {
		at = below(at, name)
	}
	a.Object, a.changed = obj, true
	return at
}

// below replaces the named member by a copy, or an empty object, and returns it.
func below(obj Object, name string) Object {
	was, _ := obj[name].(Object)
	out := make(Object, len(was)+2)
	maps.Copy(out, was)
	obj[name] = out
	return out
}

// Changed reports whether a mutator has changed the object.
func (a *Attributes) Changed() bool { return a.changed }

// Replaced reports whether a mutator has called Replace, so that Object may not be normalized.
func (a *Attributes) Replaced() bool { return a.replaced }

// GroupResource returns the resource for errors.
func (a *Attributes) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: a.Resource.Group, Resource: a.Resource.Plural}
}

// Annotate adds an audit annotation. As in Kubernetes, the first value of a key wins. It is safe for concurrent use.
func (a *Attributes) Annotate(key, value string) { a.annotate(key, value, true) }

// AnnotateRequest is Annotate for values that show the object's content: the audit log gets them only if it records
// request bodies.
func (a *Attributes) AnnotateRequest(key, value string) {
	a.annotate(key, value, a.Audit != nil && a.Audit.Bodies())
}

func (a *Attributes) annotate(key, value string, recorded bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.annotations == nil {
		a.annotations = map[string]string{}
	}
	if _, ok := a.annotations[key]; !ok {
		a.annotations[key] = value
		if a.Audit != nil && recorded {
			a.Audit.Annotate(key, value)
		}
	}
}

// Annotations returns the audit annotations, nil if there are none.
func (a *Attributes) Annotations() map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.annotations
}

// Plugin is a Mutator, a Validator or both.
type Plugin interface {
	// Name is Kubernetes' name of the plugin, as in --disable-admission-plugins.
	Name() string
}

// Mutator is called before an object is validated. It changes the object with a.Replace.
type Mutator interface {
	Plugin
	Mutate(ctx context.Context, a *Attributes) error
}

// Validator is called when an object has its final form, and changes nothing.
type Validator interface {
	Plugin
	Validate(ctx context.Context, a *Attributes) error
}

// Selective is a plugin for few kinds. It is not called for others, so that many such plugins cost other writes next to
// nothing.
type Selective interface {
	Plugin
	Concerns(r *catalog.Resource) bool
}

// Back returns obj, an object of version v, in the version of the write. A mutator calls it after a change in that
// version.
// Fields of the write's object that v lacks keep their values. obj may share parts with the result.
func (a *Attributes) Back(ctx context.Context, v *catalog.Version, obj Object) (Object, error) {
	if v == a.Version {
		return obj, nil
	}
	back, err := a.Convert(ctx, obj, v, a.Version)
	if err != nil {
		return nil, err
	}
	if restore := a.Resource.Restore; restore != nil {
		restore(v, a.Object, back)
	}
	return back, nil
}

// In returns the objects of the write in another version of the resource. They are read only.
func (a *Attributes) In(ctx context.Context, v *catalog.Version) (obj, old Object, err error) {
	if v == a.Version || a.Convert == nil {
		return a.Object, a.Old, nil
	}
	if a.Old != nil {
		if old, err = a.Convert(ctx, a.Old, a.Version, v); err != nil {
			return nil, nil, err
		}
	}
	if a.Object != nil {
		if obj, err = a.Convert(ctx, a.Object, a.Version, v); err != nil {
			return nil, nil, err
		}
	}
	return obj, old, nil
}
