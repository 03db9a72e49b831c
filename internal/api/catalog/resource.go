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

// Resource is one kind of object with all its versions, built-in or custom.
type Resource struct {
	Group      string // "" is the core group
	Plural     string
	Singular   string
	Kind       string
	ListKind   string
	ShortNames []string
	Categories []string
	Namespaced bool

	// Versions lists all declared versions in Kubernetes' order of preference, including unserved ones.
	Versions []*Version
	// Storage is the version of objects in the store.
	Storage *Version
	// Prefix is the location of the objects below the store's root, without slashes at the ends: "<group>/<plural>" for
	// custom kinds, kube-apiserver's prefix for built-in ones.
	Prefix string

	// Conversion returns the webhook that converts between versions. It may decode the definition at each call; nil
	// means that there is no webhook.
	Conversion func() (*apiextensionsv1.WebhookConversion, error)

	// Declared converts obj between two versions by the rules in the definition, in place, except for its apiVersion;
	// nil means that there are none. It precedes Conversion.
	Declared func(from, to *Version, obj Object) error

	// Sensitive is true if the definition has sensitive fields: objects are then encrypted like secrets.
	Sensitive bool

	// Served is false for a definition that is not established or is being deleted: it has no endpoints.
	Served bool
	// Terminating is true while a custom resource's definition is being deleted: existing objects can be deleted, but
	// no new ones created.
	Terminating bool

	// Definition identifies the CustomResourceDefinition; zero for built-in kinds.
	Definition Definition
	// Fixed is true if the program provides the definition instead of an object: clients cannot change it, and an
	// object of the same name has no effect.
	Fixed bool
	// Strategy holds the kind's checks and defaults beyond its schema, for all versions without a Strategy; nil for
	// custom kinds.
	Strategy *Strategy
	// Convert converts obj from version from to version to, in place. Only built-in kinds with several versions have
	// it; nil for all others.
	Convert func(from, to *Version, obj Object) error
	// Restore copies the fields that version lacking lacks from was, the object before a change in that version, to
	// obj, the object after it. Nil if all versions have all fields.
	Restore func(lacking *Version, was, obj Object)
	// Form is the encoding of the bytes in the store; nil, for nearly all kinds, means JSON of Storage.
	Form *Form
	// Secondary is true for an alias, a resource with the objects of another one: events.k8s.io has the events
	// of the core group. It has the Prefix and the Storage of that resource. Loops over all objects skip aliases.
	Secondary bool
	// Cohabits names the other resource with the same objects: the alias, or the target of an alias. Zero for all
	// others.
	Cohabits GroupResource
	// Virtual is true if objects are not stored, and Prefix is "". Verbs lists the supported verbs: either a POST with
	// a response only (reviews), or reads that compute the objects (component statuses).
	Virtual bool
	// Subresources lists subresources other than status and scale, sorted by name.
	Subresources []Subresource
	// Verbs lists the supported verbs, nil for all eight.
	Verbs []string
	// GroupPriority orders the group in discovery; 0 means 1000, the priority of custom groups.
	GroupPriority int
	// life ends when a newer snapshot no longer contains this resource. Set by Catalog.Update.
	life   context.Context
	retire context.CancelFunc

	// NoGeneration is true for kinds without a maintained metadata.generation, as in Kubernetes.
	NoGeneration bool
}

// Definition identifies the CustomResourceDefinition that a resource was made from.
type Definition struct {
	Name string
	UID  string
	// Generation is the definition's metadata.generation: it changes with its spec.
	Generation int64
	// Revision is the etcd revision of the last write of the definition: caches for another revision are stale.
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

// IsNamespace reports whether the resource is the core kind Namespace; its paths name a namespace as scope and as
// object.
func (r *Resource) IsNamespace() bool { return r.Group == "" && r.Plural == "namespaces" }

// Answers reports whether the resource supports the verb.
func (r *Resource) Answers(verb string) bool { return r.Verbs == nil || slices.Contains(r.Verbs, verb) }

// HasSubresource reports whether name is a subresource with the kind of the object itself.
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

// Form is the encoding of a kind's objects in the store, if that is not the JSON of the storage version. It serves
// kinds that kube-apiserver stores in a version that is useless above the store.
type Form struct {
	// Version is the version in the stored bytes, "" if it is that of Resource.Storage.
	Version string
	// Encode returns the bytes to store for an object's JSON (storage version, sorted keys). Decode returns the JSON of
	// stored bytes from Encode or kube-apiserver. Both may return their argument, and do not change it.
	Encode, Decode func([]byte) ([]byte, error)
}

// Over returns a form that writes like f and reads the bytes of f and older; older may be nil.
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

// versionPriority orders v among the versions of the group. It is the same for all custom versions.
func (r *Resource) versionPriority(v *Version) int {
	if r.Custom() {
		return 100
	}
	return v.Priority
}

// Subresource is a path below an object.
type Subresource struct {
	Name string
	// Kind is the kind of its requests and responses.
	Kind metav1.GroupVersionKind
	// Verbs lists the supported verbs, sorted: get, patch and update for most views of the object.
	Verbs []string
	// Object is true if it has the kind of the object itself ("finalize").
	Object bool
	// LongRunning is true if requests have no deadline and no in-flight limit ("exec", "log").
	LongRunning bool
	// Virtual is the unstored resource of a POST ("token", "eviction"); nil for subresources without one.
	Virtual *Resource
}

// Version is one version of a resource.
type Version struct {
	Name string
	// APIVersion overrides the apiVersion of objects, which is normally the resource's group and Name. The storage
	// version of an alias has one.
	APIVersion string
	Served     bool
	Deprecated bool
	// Warning is sent with each response of a deprecated version.
	Warning string
	// Removed is the release that removes a deprecated version, "1.22"; "" if unknown.
	Removed string
	// Columns lists the additional printer columns; if empty, the default is the object's age.
	Columns []Column
	// SelectableFields lists the JSON paths for field selectors other than metadata.name and metadata.namespace, in the
	// definition's spelling (".spec.bucket").
	SelectableFields []string
	// Status is true if /status exists.
	Status bool
	// ResetFields limits the endpoints of a built-in kind, by subresource; nil for custom kinds. See ResetFieldsOf.
	ResetFields map[string]ResetFields
	// Scale is nil if /scale does not exist.
	Scale *Scale
	// ReturnsDeleted is true for versions whose deletion returns the deleted object; others return a Status.
	ReturnsDeleted bool
	// Declared is the version's index in its definition. Resource.Versions has another order.
	Declared int
	// Priority orders built-in versions inside their group before the usual version order does.
	Priority int
	// PreserveUnknownFields turns pruning off for the whole object (spec.preserveUnknownFields of old definitions).
	PreserveUnknownFields bool

	// Source returns the version's OpenAPI schema. It may decode the definition anew at each call and is not for hot
	// paths; nil means that the version has no schema.
	Source func() (*apiextensionsv1.JSONSchemaProps, error)

	// Sensitive returns the fields that are masked for users without permission; its result may be nil. Sensitive
	// itself is nil if the definition has no such fields.
	Sensitive func() (*sensitive.Fields, error)

	// Rules compiles the CEL rules of the schema (schema.Options.Rules); nil means that the kind has none.
	Rules func(root *schema.Node) (schema.Evaluator, error)

	// New returns a new Go value of the version's published type (*corev1.ConfigMap), for decoding and strategic merge
	// patches of built-in kinds; nil for custom kinds.
	New func() any

	// Strategy overrides the resource's strategy for this version.
	Strategy *Strategy

	// Model is the name of the Go type in OpenAPI documents. Models returns the schema of a type, with references to
	// others, as written by package kinds/gen. Both are for built-in kinds.
	Model  string
	Models func(name string) ([]byte, error)

	program lazy[program]
	derived sync.Map
	used    atomic.Bool // since the last Trim
	idle    int         // rounds without use; belongs to Trim
}

// Derived returns the result of build for this key, computed at the first call. Other packages use it to compile parts
// of the version once for all requests, for instance its columns. Concurrent first calls may each build; one result is
// kept. The key should have an unexported type of the caller. The result lives as long as the version, or until Drop.
func (v *Version) Derived(key any, build func() any) any {
	v.use()
	if val, ok := v.derived.Load(key); ok {
		return val
	}
	val, _ := v.derived.LoadOrStore(key, build())
	return val
}

// documentsKey is the key of the cached result of HoldsDocuments.
type documentsKey struct{}

// HoldsDocuments reports whether the version's objects may contain other documents with preserved bytes
// (codec.Documents).
func (v *Version) HoldsDocuments() bool {
	if v.New == nil {
		return false
	}
	return v.Derived(documentsKey{}, func() any { return codec.HoldsDocuments(v.New()) }).(bool)
}

// program is a compiled schema.
type program struct {
	schema     *schema.Schema
	deprecated *Deprecated
}

// Schema returns the schema, compiled at the first call and kept until Drop. nil, nil means no schema.
func (v *Version) Schema() (*schema.Schema, error) {
	p, err := v.compiled()
	return p.schema, err
}

// DeprecatedFields returns the deprecated fields of a custom kind, nil if there are none.
func (v *Version) DeprecatedFields() *Deprecated {
	p, _ := v.compiled()
	return p.deprecated
}

// compiled returns the compiled schema.
func (v *Version) compiled() (program, error) {
	if v.Source == nil {
		return program{}, nil
	}
	v.use()
	return v.program.get(func() (p program, err error) {
		props, err := v.Source()
		if err != nil || props == nil {
			return p, err
		}
		masked, err := v.SensitiveFields()
		if err != nil {
			return p, err
		}
		if v.New == nil {
			p.deprecated = deprecatedFields(props)
		}
		o := schema.Options{
			PreserveUnknownFields: v.PreserveUnknownFields, Scale: v.Scale.subresource(), Rules: v.Rules,
		}
		if masked != nil {
			o.Sensitive = func(path []string) bool { return masked.At(path...).Whole() }
		}
		p.schema, err = schema.Compile(props, o)
		return p, err
	})
}

// SensitiveFields returns the sensitive fields of the version's objects; nil means none.
func (v *Version) SensitiveFields() (*sensitive.Fields, error) {
	if v.Sensitive == nil {
		return nil, nil
	}
	return v.Sensitive()
}

// Drop discards the compiled schema and all derived values; the next use computes them again.
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
	JSONPath    string // with a leading dot, without braces; "" only with an expression
	Expression  string // CEL, in place of the path; "" if there is none
}

// Scale names where /scale finds its fields, as JSON paths (".spec.replicas").
type Scale struct {
	SpecReplicasPath   string
	StatusReplicasPath string
	LabelSelectorPath  string // "" if the kind has none
	// Selector returns the label selector of a built-in kind, which stores it in another form; nil for all others.
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

// lazy computes a value on first use. It keeps errors, too: an invalid definition stays invalid.
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
