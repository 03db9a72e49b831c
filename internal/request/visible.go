package request

// Visibility says which objects of a resource a caller may see, as roles and bindings are at one revision. It is
// immutable and safe for concurrent use.
//
// A list or a watch that asks for it (AsksVisible) answers with what the caller may see where it would be refused
// otherwise. Package auth/rbac makes it, and the verbs ask it about each object.
type Visibility interface {
	// IncludesAll reports whether all objects of a namespace are visible; "" stands for the whole cluster.
	IncludesAll(namespace string) bool
	// Includes reports whether one object is visible. The namespace of an object without one is "".
	Includes(namespace, name string) bool
	// Allows reports whether the caller may do something else with the resource, in the namespace of the request.
	Allows(verb, subresource string) bool
	// At returns what was visible at a revision, and the part of it that is visible still. Both are nil if that is no
	// longer known, and the same value if no grant of the caller has changed since.
	//
	// still stays bounded by today's grants until Next reaches them: history that the caller may no longer read, or
	// could not read at the time, is not visible in between.
	At(revision int64) (then, still Visibility)
	// Next returns what is visible after the next change of roles and bindings, and the revision of that change. It is
	// nil until there is one. moved is false if the same is visible for certain.
	Next() (next Visibility, revision int64, moved bool)
	// Changed is closed when Next returns something.
	Changed() <-chan struct{}
}

// visibleParameter is the query parameter by which a list or watch asks for what the caller may see.
const visibleParameter = "visible"

// AsksVisible reports whether a request is a list or watch that asks for what the caller may see.
func (i *Info) AsksVisible() bool { return i.visible }
