package request

// Visibility is the set of objects of a resource that a caller may see, according to the roles and bindings at one
// revision. It is immutable and safe for concurrent use.
//
// A list or a watch with visible=true (RequestsVisible) returns the visible objects instead of a 403. Package auth/rbac
// implements Visibility, and the verbs call it for each object.
type Visibility interface {
	// IncludesAll reports whether all objects of a namespace are visible; "" stands for the whole cluster.
	IncludesAll(namespace string) bool
	// Includes reports whether one object is visible. The namespace of an object without one is "".
	Includes(namespace, name string) bool
	// Allows reports whether the caller may use another verb on the resource, in the namespace of the request.
	Allows(verb, subresource string) bool
	// At returns the visibility at a revision, and the part of it that remains. Both are nil if the history no longer
	// reaches back that far, and the same value if no grant of the caller has changed since.
	//
	// still is bounded by the current grants until Next reaches them. So history that the caller may no longer read, or
	// could not read at the time, stays invisible in between.
	At(revision int64) (then, still Visibility)
	// Next returns the visibility after the next change of roles and bindings, and the revision of that change. It is
	// nil if there is none yet. moved is false if the visible set certainly has not changed.
	Next() (next Visibility, revision int64, moved bool)
	// Changed is closed when Next has a result.
	Changed() <-chan struct{}
}

// visibleParameter is the query parameter that limits a list or watch to visible objects.
const visibleParameter = "visible"

// RequestsVisible reports whether a request is a list or watch with visible=true.
func (i *Info) RequestsVisible() bool { return i.visible }
