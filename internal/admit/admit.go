// Package admit decides whether a write may happen, and may change it on the way.
//
// It stands around validation on the path of a write. Before it, Chain.Mutate asks every plugin that changes objects,
// in kube's order, and asks them once more if a late one has changed what an early one has seen. After it, when the
// object is as it will be stored, Chain.Validate asks every plugin that validates. The first refusal is the client's
// answer.
//
// Attributes are what plugins are told about one write: one goroutine's, but for Annotate and Warn. Plugins are safe
// for concurrent use. The plugins that Kubernetes ships are Lifecycle, Topology and those in the packages below this
// one: plugin (about a few built-in kinds each), policy (CEL policies) and hook (webhooks); match decides which writes
// those are about and expr runs their expressions.
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

// Operation is what a request does to an object.
type Operation string

// Operations.
const (
	Create Operation = "CREATE"
	Update Operation = "UPDATE"
	Delete Operation = "DELETE"
	// Connect asks for a connection to what an object stands for: a container, a node. Object is what was asked for
	// (PodExecOptions), made of the query.
	Connect Operation = "CONNECT"
)

// Attributes say what a request is about. All fields but Object and Name keep their values through the whole chain.
type Attributes struct {
	Operation Operation
	Resource  *catalog.Resource
	Version   *catalog.Version // that the request names, and that Object and Old are in
	// Cohabits is another resource under which the objects are served too, in the version CohabitsVersion, in which
	// Convert gives them; nil for nearly all kinds.
	Cohabits        *catalog.Resource
	CohabitsVersion *catalog.Version
	Subresource     string
	// Kind of Object and Old. It is the resource's, but autoscaling/v1 Scale for /scale.
	Kind schema.GroupVersionKind
	// Namespace is the object's own name for the kind Namespace, as in Kubernetes, and "" for other cluster-wide kinds.
	Namespace string
	// Name is "" while a name is still to be generated, and for the objects of a deletecollection.
	Name   string
	User   user.Info
	DryRun bool
	// Options returns the CreateOptions, UpdateOptions or DeleteOptions of the operation, with kind and apiVersion. A
	// patch has the options of the update or create that it amounts to. It makes a new object at each call. nil for
	// Connect, which has none.
	Options func() Object
	// Object is the new object, nil for deletions. Validators do not change it. Old is the object before, nil for
	// creations, and read only.
	Object, Old Object

	// Convert returns an object of Version in another version of the resource or its twin, or the other way round. obj
	// is not changed; the result may share parts of it. nil if the resource has one version only.
	Convert func(ctx context.Context, obj Object, from, to *catalog.Version) (Object, error)
	// Normalize gives an object of version v that a mutator has changed what a decoded one has: defaults, and for
	// built-in kinds the form of their Go type. It works in place.
	Normalize func(v *catalog.Version, obj Object) error
	// Warn receives sentences for the client, from any goroutine. Never nil.
	Warn func(string)
	// Audit receives the annotations too; nil if the request is not recorded.
	Audit request.Record

	// Sequence is set by a validator that wants the write to happen in sequence with others. Nil for nearly all writes.
	Sequence *Sequence

	changed, replaced bool
	round             round

	mu          sync.Mutex
	annotations map[string]string
}

// Sequence has writes of one name happen one after another, among replicas too: what a validator has compared with all
// that there was is still so when the object is stored.
type Sequence struct {
	Name string
	// Seen is the revision up to which the validator knows all writes of the name.
	Seen int64
	// Again asks the validator once more, when another replica has written since Seen. It returns the new Seen.
	Again func(ctx context.Context) (seen int64, err error)
	// End is called when the write has happened, or will not.
	End func()
}

// EndSequence says that the write has happened, or will not.
func (a *Attributes) EndSequence() {
	if s := a.Sequence; s != nil {
		a.Sequence = nil
		s.End()
	}
}

// Replace puts obj in the place of Object, which it may be itself after a change: a mutator says by it that it has
// changed something. obj must not share changed parts with Old, and need not have the form of a decoded object.
func (a *Attributes) Replace(obj Object) { a.Object, a.changed, a.replaced = obj, true, true }

// Edit replaces Object by a copy in which the maps along path are copies too, made where there are none, and returns
// the last of them for changes. What lies below that is still shared with what Object was. Who changes it leaves it in
// the form of a decoded object: no empty maps, no values of other Go types than JSON has.
func (a *Attributes) Edit(path ...string) Object {
	obj := maps.Clone(a.Object)
	at := obj
	for _, name := range path {
		at = below(at, name)
	}
	a.Object, a.changed = obj, true
	return at
}

// below puts a copy of the object under a name, or an empty one, in its place, and returns it.
func below(obj Object, name string) Object {
	was, _ := obj[name].(Object)
	out := make(Object, len(was)+2)
	maps.Copy(out, was)
	obj[name] = out
	return out
}

// Changed reports whether a mutator has changed the object.
func (a *Attributes) Changed() bool { return a.changed }

// Replaced reports whether a mutator has put another object in its place, which may have any form.
func (a *Attributes) Replaced() bool { return a.replaced }

// GroupResource returns the resource's name in errors.
func (a *Attributes) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: a.Resource.Group, Resource: a.Resource.Plural}
}

// Annotate adds an audit annotation. The first value of a key stays, as in Kubernetes. It is safe for concurrent use.
func (a *Attributes) Annotate(key, value string) { a.annotate(key, value, true) }

// AnnotateRequest is Annotate for what shows content of the object: the audit log gets it where it records what clients
// send.
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

// Plugin validates writes. It is a Mutator, a Validator or both.
type Plugin interface {
	// Name is kube's name for the plugin, as --disable-admission-plugins spells it.
	Name() string
}

// Mutator is a plugin that is asked before an object is validated. It changes the object by a.Replace.
type Mutator interface {
	Plugin
	Mutate(ctx context.Context, a *Attributes) error
}

// Validator is a plugin that is asked when an object is as it will be stored, and changes nothing.
type Validator interface {
	Plugin
	Validate(ctx context.Context, a *Attributes) error
}

// Selective is a plugin that is about the objects of few kinds. It is not asked about others, so that many such
// plugins cost a write of another kind next to nothing.
type Selective interface {
	Plugin
	Concerns(r *catalog.Resource) bool
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
