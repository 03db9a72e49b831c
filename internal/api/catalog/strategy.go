package catalog

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/object"
)

// Object is decoded JSON: map[string]any, []any, string, bool, int64, float64, nil.
type Object = object.Object

// Strategy holds a built-in kind's checks and defaults beyond its schema. Every function is optional, pure, and works
// on objects of the Strategy's version (Resource.StrategyFor). Objects passed as old are read only.
type Strategy struct {
	// ValidName returns the problems of a name in Kubernetes' words; nil means that names are DNS subdomains. prefix is
	// true for a generateName prefix.
	ValidName func(name string, prefix bool) []string
	// NameIsPrefix is true if a generated name equals its prefix.
	NameIsPrefix bool
	// MetadataLast is true if the metadata of a new object is validated only after Validate succeeds.
	MetadataLast bool
	// Off lists the disabled feature gates that affect the kind's rules.
	Off []string
	// Decode normalizes a request's object in place, like a round trip through the kind's Go type. It drops unknown
	// fields and returns their paths; an error is the one from decoding into the Go type. It replaces normalization by
	// the schema, which would drop nulls that are significant for Go types.
	Decode func(obj Object) (unknown []string, err error)
	// Default sets defaults that a schema cannot express. It runs on every write after schema defaulting, and on reads.
	Default func(obj Object)
	// Read upgrades a stored object after Default, if an older server has stored it in an outdated form.
	Read func(obj Object)
	// PrepareCreate sets and clears server-owned fields (status on create, for instance).
	PrepareCreate func(obj Object, e Env)
	// PrepareUpdate does the same for an update. subresource is "", "status", or one of Resource.Subresources.
	PrepareUpdate func(obj, old Object, subresource string, e Env)
	// Store brings a validated object into its stored and returned form, in place.
	Store func(obj Object)
	// Validate returns all errors of a new object except those in its metadata. It replaces validation by the schema,
	// which is only descriptive for built-in kinds, as in Kubernetes. When ctx ends, Validate may return early with an
	// unusable result.
	Validate func(ctx context.Context, obj Object) field.ErrorList
	// ValidateUpdate returns all errors of an update, including Validate's. ctx is as for Validate.
	ValidateUpdate func(ctx context.Context, obj, old Object, subresource string) field.ErrorList
	// ValidateIn returns errors that depend on the object's namespace; old is nil for a creation. labels returns the
	// labels of the namespace, or an error if it does not exist.
	ValidateIn func(obj, old Object, subresource string, labels func() (map[string]string, error)) field.ErrorList
	// Proof returns the check that all objects of another kind must pass before an update of obj, which is complete and
	// valid; nil means that there is none. The update then holds the writes of these objects until it is committed.
	Proof func(obj, old Object) (*Proof, error)
	// Warnings returns warnings for the client about its object; old is nil for a creation.
	Warnings func(obj, old Object, subresource string) []string
	// PrepareDelete turns a deletion into an update by returning true, after changing obj (a namespace becomes
	// Terminating).
	PrepareDelete func(obj Object, e Env) (update bool)
	// GracePeriod returns the grace period in seconds when an object's deletion begins; asked is the client's value, or
	// nil. The object stays until the period ends and a client deletes it again with 0. nil means that objects of the
	// kind are deleted at once.
	GracePeriod func(obj Object, requested *int64) int64
	// FencesContents is true if an object of this kind contains others that are deleted with it (namespaces,
	// definitions). Once PrepareDelete has begun its deletion, no write in progress adds to its contents.
	FencesContents bool
	// TTL is the lifetime of an object after its last write; 0 means no limit.
	TTL time.Duration
	// Dependents is the fate of the owned objects in a deletion that names no policy.
	Dependents Dependents
	// WarnDependents is a warning for a deletion that names no policy; "" means none.
	WarnDependents string
	// CreateOnUpdate lets a PUT create the object if it does not exist.
	CreateOnUpdate bool
	// FieldLabels returns the values of the kind's additional field selectors ("type" for Secret, "involvedObject.name"
	// for Event).
	FieldLabels map[string]func(obj Object) string
	// UnknownField is the error for any other field, with %s or %q for its name; "" means the standard text.
	UnknownField string
	// Serial is true if the rules depend on other objects of the kind: its writes run one after another, each with the
	// catalog after the previous one.
	Serial bool
	// Keep returns the reason why an object of that name must not be deleted, whether it exists or not; "" if it may
	// be. As in Kubernetes, a deletecollection skips it. nil means that all may be deleted.
	Keep func(name string) string
	// VisibleOnReturn is true if a write returns only when the view shows it, because the client's next requests depend
	// on it.
	VisibleOnReturn bool
	// UnconditionalUpdate allows a PUT without resourceVersion.
	UnconditionalUpdate bool
	// Cells returns the values of the version's Columns, in order.
	Cells func(obj Object, e Env) []any
	// Rank orders the rows of a table, the lowest first; equal ranks keep the order of the list. nil keeps the list's
	// order.
	Rank func(obj Object) int64
}

// Proof is a check of the objects of a kind, before a write of the definition of the kind.
type Proof struct {
	// Key identifies the check: a proof holds for another write with the same key.
	Key string
	// Contents is the kind of the objects.
	Contents GroupResource
	// Versions are the versions in which Check receives each object, as a read returns it; nil means as stored.
	Versions []string
	// Within bounds the time of the check, which may then miss objects. 0 means that the check is exact: it covers all
	// objects at the revision of the write, and holds their writes until the write is committed.
	Within time.Duration
	// Path is the field to refuse.
	Path *field.Path
	// Check returns the reason against an object, without values of the object. It may change obj. version is one of
	// Versions, "" for the stored version. nil means that no objects are read.
	Check func(version string, obj Object) error
	// Verdict returns the errors of the write after the check of the objects; nil means none. all is the number of
	// stored objects, and read the number of objects that were checked.
	Verdict func(read, all int) field.ErrorList
	// Report returns the warning for the client after the write, "" for none.
	Report func(read, all int) string
}

// Exact reports whether the proof holds at the revision of the write.
func (p *Proof) Exact() bool { return p.Check != nil && p.Within == 0 }

// Dependents is a kind's default for the objects owned by a deleted object.
type Dependents int

// DeleteDependents deletes them in the background, OrphanDependents keeps them (batch/v1 Job, ReplicationController).
// NoDependents is for kinds that own nothing: policies are ignored (Event).
const (
	DeleteDependents Dependents = iota
	OrphanDependents
	NoDependents
)

// Env is the environment available to a Strategy.
type Env struct {
	Now time.Time
	// Snapshot is the catalog of the request.
	Snapshot *Snapshot
	// User is the user of the request; nil for the server's own writes.
	User user.Info
}
