package catalog

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/internal/object/sensitive"
)

// Resource is one kind of object with all its versions, built in or custom.
type Resource struct {
	Group      string // "" is the core group
	Plural     string
	Singular   string
	Kind       string
	ListKind   string
	ShortNames []string
	Categories []string
	Namespaced bool

	// Versions are all declared versions in kube's order of preference; unserved ones are among them.
	Versions []*Version
	// Storage is the version in which objects are written to the store.
	Storage *Version
	// Prefix is where the objects live below the store's root, without slashes at the ends:
	// "<group>/<plural>" for custom kinds, what kube-apiserver uses for built-in ones.
	Prefix string

	// Conversion returns the webhook that converts between versions. It may decode the definition anew at each call;
	// nil means that there is none.
	Conversion func() (*apiextensionsv1.WebhookConversion, error)

	// Sensitive is true if the definition mentions sensitive fields: objects are encrypted as secrets are.
	Sensitive bool

	// Served is false for a definition that is not established or is being deleted: no endpoint answers for it.
	Served bool
	// Terminating is true while a custom resource's definition is being deleted: existing objects may go, new ones may
	// not come.
	Terminating bool

	// Definition identifies the CustomResourceDefinition; zero for built-in kinds.
	Definition Definition
	// Fixed is true if the definition is the program's and not an object: no client changes it, and an object of the
	// same name means nothing.
	Fixed bool
	// Strategy are what the kind checks and sets beyond its schema, for all versions that have none of their own; nil
	// for custom kinds.
	Strategy *Strategy
	// Convert turns obj, which is of version from, into one of version to, in place. Built-in kinds of several
	// versions have it; nil for all others.
	Convert func(from, to *Version, obj Object) error
	// Form is how the store keeps the bytes; nil for nearly all kinds: the JSON of Storage.
	Form *Form
	// Secondary is true if the objects belong to another resource, which has the same Prefix: the events of
	// events.k8s.io are those of the core group. Storage is then that resource's version. What goes over all objects
	// leaves aliases out.
	Secondary bool
	// Cohabits names the other resource whose objects these are too: the alias, or the one that it is an alias of.
	// Zero for all others.
	Cohabits GroupResource
	// Virtual is true if objects are not stored. Verbs says what can be done with them: a POST gets an answer, and
	// that is all (reviews), or a read finds them out (component statuses). Prefix is "" then.
	Virtual bool
	// Subresources beyond status and scale, sorted by name.
	Subresources []Subresource
	// Verbs that the resource answers, nil for all eight.
	Verbs []string
	// GroupPriority orders the group in discovery; 0 means 1000, what custom groups have.
	GroupPriority int
	// life ends when another state of the catalog no longer holds this resource. Set by Catalog.Update.
	life   context.Context
	retire context.CancelFunc

	// NoGeneration is true for kinds whose metadata.generation Kubernetes does not maintain.
	NoGeneration bool
	// ReturnsDeleted is true for the kinds whose deletion answers the object that is gone; the others answer a Status.
	ReturnsDeleted bool
}

// Definition identifies the CustomResourceDefinition that a resource was made from.
type Definition struct {
	Name string
	UID  string
	// Generation is the definition's metadata.generation: it changes with its spec.
	Generation int64
	// Revision is the etcd revision at which the definition was last written: a cache made under another one is stale.
	Revision int64
}

// Life ends when the catalog replaces or removes the resource: long requests (watches) then look whether they may go
// on.
func (r *Resource) Life() context.Context { return r.life }

// Version returns the declared version of that name, or nil.
func (r *Resource) Version(name string) *Version {
	for _, v := range r.Versions {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// StrategyFor returns the rules of objects of version v, or nil.
func (r *Resource) StrategyFor(v *Version) *Strategy {
	if v.Strategy != nil {
		return v.Strategy
	}
	return r.Strategy
}

// APIVersion returns "group/version", or "version" in the core group.
func (r *Resource) APIVersion(v *Version) string {
	if v.APIVersion != "" {
		return v.APIVersion
	}
	if r.Group == "" {
		return v.Name
	}
	return r.Group + "/" + v.Name
}

// Qualified returns "plural.group", or "plural" in the core group: the resource's name in messages.
func (r *Resource) Qualified() string {
	if r.Group == "" {
		return r.Plural
	}
	return r.Plural + "." + r.Group
}

// IsNamespace reports whether the resource is the core kind Namespace, which paths name twice: as scope and as object.
func (r *Resource) IsNamespace() bool { return r.Group == "" && r.Plural == "namespaces" }

// Answers reports whether the resource has the verb.
func (r *Resource) Answers(verb string) bool { return r.Verbs == nil || slices.Contains(r.Verbs, verb) }

// HasSubresource reports whether name is a subresource that takes the object itself.
func (r *Resource) HasSubresource(v *Version, name string) bool {
	s := r.Subresource(name)
	return name == "status" && v.Status || s != nil && s.Object
}

// Subresource returns the named one of Subresources, or nil.
func (r *Resource) Subresource(name string) *Subresource {
	for i := range r.Subresources {
		if r.Subresources[i].Name == name {
			return &r.Subresources[i]
		}
	}
	return nil
}

// Form is how the store keeps the bytes of a kind's objects where that is not the JSON of the storage version. It is
// for what kube-apiserver stores in a version that is no good to anything above the store.
type Form struct {
	// Version is the version that the store's bytes name, "" if it is that of Resource.Storage.
	Version string
	// Encode returns what goes into the store for an object's JSON (storage version, sorted keys), Decode the JSON of
	// what lies there, Encode's or kube-apiserver's. Both may return their argument, and do not change it.
	Encode, Decode func([]byte) ([]byte, error)
}

// Over returns a form that writes as f does and reads what f and older, which may be nil, write.
func (f *Form) Over(older *Form) *Form {
	if older == nil {
		return f
	}
	out := *f
	out.Decode = func(raw []byte) ([]byte, error) {
		raw, err := older.Decode(raw)
		if err != nil {
			return nil, err
		}
		return f.Decode(raw)
	}
	return &out
}

// Custom reports whether a CustomResourceDefinition brought the resource.
func (r *Resource) Custom() bool { return r.Definition.Name != "" }

func (r *Resource) priority() int {
	if r.GroupPriority == 0 {
		return 1000
	}
	return r.GroupPriority
}

// versionPriority orders v among the versions of the group. Those of custom groups are all the same.
func (r *Resource) versionPriority(v *Version) int {
	if r.Custom() {
		return 100
	}
	return v.Priority
}

// Subresource is a path below an object.
type Subresource struct {
	Name string
	// Kind of what it takes and answers.
	Kind metav1.GroupVersionKind
	// Verbs that it answers, sorted: get, patch and update for most that are views of the object.
	Verbs []string
	// Object is true if it takes and answers the object itself ("finalize").
	Object bool
	// LongRunning is true if a request may last as long as its client wants ("exec", "log"): it has no deadline and is
	// not counted among those in flight.
	LongRunning bool
	// Virtual is the resource whose objects a POST takes and answers ("token", "eviction"); nil for subresources
	// without one.
	Virtual *Resource
}

// Version is one version of a resource.
type Version struct {
	Name string
	// APIVersion that objects of this version carry, if it is not the resource's group and Name: that of an alias's
	// storage.
	APIVersion string
	Served     bool
	Deprecated bool
	// Warning is sent with each answer of a deprecated version.
	Warning string
	// Removed is the release in which a deprecated version goes, "1.22"; "" if that is not known.
	Removed string
	// Columns are the additional printer columns; empty means the default, the object's age.
	Columns []Column
	// SelectableFields are the JSON paths that field selectors may use beside metadata.name and metadata.namespace, as
	// the definition spells them (".spec.bucket").
	SelectableFields []string
	// Status is true if /status exists.
	Status bool
	// ResetFields is what each endpoint of a built-in kind lets its callers change, by subresource; nil for custom
	// kinds. See ResetFieldsOf.
	ResetFields map[string]ResetFields
	// Scale is nil if /scale does not exist.
	Scale *Scale
	// Declared is the version's place in its definition, from 0. Resource.Versions has another order.
	Declared int
	// Priority orders built-in versions inside their group before the usual version order does.
	Priority int
	// PreserveUnknownFields turns pruning off for the whole object (spec.preserveUnknownFields of old definitions).
	PreserveUnknownFields bool

	// Source returns the version's OpenAPI schema. It may decode the definition anew at each call and is not for hot
	// paths; nil means that the version has no schema.
	Source func() (*apiextensionsv1.JSONSchemaProps, error)

	// Sensitive returns what of the version's objects is masked for those who may not read it; its result may be nil.
	// nil means that the definition does not mention any such thing.
	Sensitive func() (*sensitive.Fields, error)

	// Rules compiles the CEL rules of the schema (schema.Options.Rules); nil means that the kind has none.
	Rules func(root *schema.Node) (schema.Evaluator, error)

	// New returns a pointer to a fresh Go value of the version's published type (*corev1.ConfigMap): what built-in
	// kinds are decoded through and what strategic merge patches need. nil for custom kinds.
	New func() any

	// Strategy are the rules of this version if they are not the resource's.
	Strategy *Strategy

	// Model is the name of the Go type in published documents, Models returns what package kinds/gen writes about a
	// type of that name, or an error: its schema with references to others. Both are for built-in kinds.
	Model  string
	Models func(name string) ([]byte, error)

	program lazy[*schema.Schema]
	derived sync.Map
	used    atomic.Bool // since the last Trim
	idle    int         // rounds without use; Trim's
}

// Derived returns what build made at the first call with this key: what another package compiles from the version
// (its columns, for instance) and shares among requests. Concurrent first calls may each build; one result is kept.
// key should be of an unexported type of the caller. It lives as long as the version, or until Drop.
func (v *Version) Derived(key any, build func() any) any {
	v.use()
	if val, ok := v.derived.Load(key); ok {
		return val
	}
	val, _ := v.derived.LoadOrStore(key, build())
	return val
}

// documentsKey is where it is kept whether a version's objects may have documents.
type documentsKey struct{}

// HoldsDocuments reports whether the version's objects may have documents of others within them, whose bytes are kept
// (codec.Documents).
func (v *Version) HoldsDocuments() bool {
	if v.New == nil {
		return false
	}
	return v.Derived(documentsKey{}, func() any { return codec.HoldsDocuments(v.New()) }).(bool)
}

// Schema returns the compiled schema. It is made at the first call and kept until Drop. nil, nil means no schema.
func (v *Version) Schema() (*schema.Schema, error) {
	if v.Source == nil {
		return nil, nil
	}
	v.use()
	return v.program.get(func() (*schema.Schema, error) {
		props, err := v.Source()
		if err != nil || props == nil {
			return nil, err
		}
		masked, err := v.SensitiveFields()
		if err != nil {
			return nil, err
		}
		o := schema.Options{
			PreserveUnknownFields: v.PreserveUnknownFields, Scale: v.Scale.subresource(), Rules: v.Rules,
		}
		if masked != nil {
			o.Sensitive = func(path []string) bool { return masked.At(path...).Whole() }
		}
		return schema.Compile(props, o)
	})
}

// SensitiveFields returns what of the version's objects is sensitive; nil is nothing.
func (v *Version) SensitiveFields() (*sensitive.Fields, error) {
	if v.Sensitive == nil {
		return nil, nil
	}
	return v.Sensitive()
}

// Drop forgets the compiled schema and all that was derived; the next call makes it again.
func (v *Version) Drop() {
	v.program.drop()
	v.derived.Clear()
}

// Column is one additional printer column.
type Column struct {
	Name        string
	Type        string // integer, number, string, boolean, date
	Format      string
	Description string
	Priority    int32
	JSONPath    string // with its leading dot, no braces
}

// Scale names where /scale finds its fields, as JSON paths (".spec.replicas").
type Scale struct {
	SpecReplicasPath   string
	StatusReplicasPath string
	LabelSelectorPath  string // "" if the kind has none
	// Selector returns the label selector of a built-in kind, which has it in another form; nil for all others.
	Selector func(obj Object) string
}

// subresource returns s as the definition has it; a nil s is nil.
func (s *Scale) subresource() *apiextensionsv1.CustomResourceSubresourceScale {
	if s == nil {
		return nil
	}
	sub := &apiextensionsv1.CustomResourceSubresourceScale{
		SpecReplicasPath: s.SpecReplicasPath, StatusReplicasPath: s.StatusReplicasPath,
	}
	if s.LabelSelectorPath != "" {
		sub.LabelSelectorPath = &s.LabelSelectorPath
	}
	return sub
}

// lazy makes a value on first use. Errors are kept too: a definition does not become valid by asking again.
type lazy[T any] struct {
	mu  sync.Mutex
	val atomic.Pointer[made[T]]
}

type made[T any] struct {
	val T
	err error
}

func (l *lazy[T]) get(build func() (T, error)) (T, error) {
	if m := l.val.Load(); m != nil {
		return m.val, m.err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.val.Load(); m != nil {
		return m.val, m.err
	}
	m := &made[T]{}
	m.val, m.err = build()
	l.val.Store(m)
	return m.val, m.err
}

func (l *lazy[T]) drop() { l.val.Store(nil) }
