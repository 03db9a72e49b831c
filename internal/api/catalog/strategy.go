package catalog

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/object"
)

// Object is decoded JSON: map[string]any, []any, string, bool, int64, float64, nil.
type Object = object.Object

// Strategy are what a built-in kind checks and sets beyond its schema. Every function is optional, pure, and works on
// objects of the version that the rules belong to (Resource.StrategyFor). Objects passed as old are read only.
type Strategy struct {
	// ValidName returns what is wrong with a name, each a sentence of kube's; nil means a DNS subdomain.
	// prefix is true for a generateName prefix.
	ValidName func(name string, prefix bool) []string
	// MetadataLast is true if the metadata of a new object is looked at only when Validate finds nothing wrong.
	MetadataLast bool
	// Decode brings an object of a request into the form that it has after being read into the kind's Go type and
	// written again, in place. It drops fields that the kind does not have and returns their paths; an error is what
	// decoding into the Go type gives. It takes the place of normalizing by the schema, which would drop nulls that
	// mean something to Go.
	Decode func(obj Object) (unknown []string, err error)
	// Default fills in what schema defaults cannot express. It runs on every write after schema defaulting, and on
	// reads.
	Default func(obj Object)
	// Read completes an object that comes out of the store, after Default: what an older server has stored and no
	// newer one would.
	Read func(obj Object)
	// PrepareCreate sets and clears fields that the server owns (status on create, for instance).
	PrepareCreate func(obj Object, e Env)
	// PrepareUpdate does the same for an update. subresource is "", "status", or one of Resource.Subresources.
	PrepareUpdate func(obj, old Object, subresource string, e Env)
	// Store brings an object that has been judged into the form in which it is stored and answered, in place.
	Store func(obj Object)
	// Validate returns everything wrong with a new object beyond its metadata. It takes the place of validation by the
	// schema: that of a built-in kind describes, as in Kubernetes, and does not judge.
	Validate func(obj Object) field.ErrorList
	// ValidateUpdate returns everything wrong with an update, what Validate finds included.
	ValidateUpdate func(obj, old Object, subresource string) field.ErrorList
	// ValidateIn returns what the namespace of an object forbids it to say; old is nil for a creation. labels returns
	// those of the namespace, or an error if it is not there.
	ValidateIn func(obj, old Object, subresource string, labels func() (map[string]string, error)) field.ErrorList
	// Warnings returns sentences for the client about an object that it wrote; old is nil for a creation.
	Warnings func(obj, old Object, subresource string) []string
	// PrepareDelete turns a deletion into an update by returning true, after changing obj (a namespace becomes
	// Terminating).
	PrepareDelete func(obj Object, e Env) (update bool)
	// GracePeriod returns how many seconds an object gets to end by itself when its deletion begins; asked is what the
	// client wants, nil if it does not say. Until the time is over, and until a client deletes it once more with 0,
	// the object stays. nil means that objects of the kind go at once.
	GracePeriod func(obj Object, asked *int64) int64
	// FencesContents is true if objects of other kinds belong to one of this kind and go with it (namespaces,
	// definitions): once its deletion has begun, no write that has been under way adds to them. PrepareDelete begins
	// it.
	FencesContents bool
	// TTL is how long an object lives after its last write; 0 means forever.
	TTL time.Duration
	// Dependents is what a deletion that names no policy does to the objects that the deleted one owns.
	Dependents Dependents
	// WarnDependents is what a client reads whose deletion names no policy; "" for nothing.
	WarnDependents string
	// CreateOnUpdate lets a PUT create the object if it does not exist.
	CreateOnUpdate bool
	// FieldLabels returns the values of the kind's own field selectors ("type" for Secret, "involvedObject.name" for
	// Event).
	FieldLabels map[string]func(obj Object) string
	// UnknownField is what is said about any other field, with %s or %q for its name; "" means the usual sentence.
	UnknownField string
	// Serial is true if the rules look at other objects of the kind: its writes happen one after another, each seeing
	// the catalog that the one before it made.
	Serial bool
	// Keep says why the object of that name may not be deleted, whether there is one or not; "" if it may. A
	// deletecollection does not ask, as in Kubernetes. nil means that all may.
	Keep func(name string) string
	// VisibleOnReturn is true if a write returns only when the view shows it, because the requests that follow depend
	// on it.
	VisibleOnReturn bool
	// UnconditionalUpdate allows a PUT without resourceVersion to replace whatever is there.
	UnconditionalUpdate bool
	// Cells returns the printed columns' values for Columns of the version, in order.
	Cells func(obj Object, e Env) []any
	// Rank orders the rows of a table, the lowest first; those of one rank stay in the order of the list. nil means
	// that all do.
	Rank func(obj Object) int64
}

// Dependents is a kind's usual way with the objects that name one of its own as their owner.
type Dependents int

// DeleteDependents deletes them in the background, OrphanDependents lets them live (batch/v1 Job,
// ReplicationController). NoDependents is for kinds that own nothing: policies are ignored (Event).
const (
	DeleteDependents Dependents = iota
	OrphanDependents
	NoDependents
)

// Env is what rules may know about the world.
type Env struct {
	Now time.Time
	// Snapshot is the catalog that the request works with.
	Snapshot *Snapshot
	// User is who asks; nil in the server's own business.
	User user.Info
}
