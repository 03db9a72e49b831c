package rule

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/schemas"
	"github.com/bowsprit/bowsprit/internal/object"
)

// Kind is the definition of a built-in kind apart from its schema and its text.
//
// Names, categories, storage prefixes and the like are written out because no published source has them: in Kubernetes
// they are code of each kind's registry.
type Kind struct {
	// Group is the group of the storage version.
	Group         Group
	Kind, Plural  string
	Short         []string
	Categories    []string
	ClusterScoped bool
	// Virtual is true if objects are not stored. Verbs are then the supported verbs, nil for answering a POST.
	Virtual bool
	Verbs   []string
	// Prefix is kube-apiserver's prefix of the kind in etcd, if it is not the plural.
	Prefix string
	Status bool
	Scale  *catalog.Scale
	// Generation is true if metadata.generation is maintained.
	Generation bool
	// StatusOnly is true if an update of status cannot change metadata.
	StatusOnly bool
	// ResetFields are the reset fields of endpoints, by subresource, if the fields above do not imply them. See
	// resetFields.
	ResetFields map[string]catalog.ResetFields
	// DropGated drops fields behind disabled feature gates of Kubernetes from obj, unless old has them. It runs before
	// PrepareCreate, with a nil old, and before PrepareUpdate except for updates of status. nil drops nothing.
	DropGated func(obj, old object.Object)
	// Deprecated is the warning in every response about the kind, usually "", and Removed the release of its removal.
	Deprecated, Removed string
	// OnDemand is true if even the storage version is served only if the runtime configuration enables it.
	OnDemand bool
	// AnyFinalizer is true for the few kinds with finalizers of any name.
	AnyFinalizer bool
	// NoDeleteCollection is true for kinds without deletecollection.
	NoDeleteCollection bool
	// ReturnsDeleted is true for kinds with deletions that return the object.
	ReturnsDeleted bool
	Subresources   []catalog.Subresource
	// New returns a pointer to a fresh value of the Go type.
	New func() any
	// Columns are replaced by the columns of the kind's text, if it has some.
	Columns []catalog.Column
	// Strategy is completed by the kind's text.
	Strategy *catalog.Strategy
	// Warn adds warnings about a new or changed object, WarnStatus about an update of its status. Either may be nil.
	Warn, WarnStatus func(*Warnings)

	// Also are other versions, none for nearly all kinds; versions with a strategy of their own come first.
	Also []*Version
	// Convert is needed if one of Also has other fields: see catalog.Resource.Convert.
	Convert func(from, to *catalog.Version, obj object.Object) error
	// Restore is needed if Convert drops fields: see catalog.Resource.Restore.
	Restore func(lacking *catalog.Version, was, obj object.Object)
	// OlderError changes an error of a declarative rule to the fields of a version that Convert converts from.
	OlderError func(*field.Error)
	// Form is the storage form, if not JSON of the storage version: see catalog.Resource.Form.
	Form *catalog.Form
}

// Group is an API group in one version. The priorities equal the ones in kube-apiserver's own APIService objects.
type Group struct {
	Name, Version string
	// Priority orders groups in discovery.
	Priority int
	// Rank orders the group's versions.
	Rank int
}

// Version is a version other than the storage version.
type Version struct {
	Name     string
	Rank     int
	New      func() any
	Strategy *catalog.Strategy
	// Default sets the defaults of this version beyond the storage version's. nil does nothing, and it is not called if
	// the version has a Strategy of its own.
	Default func(object.Object)
	// Lenient is true for a version that returns deleted objects and allows a PUT without resourceVersion, although the
	// storage version does not.
	Lenient bool
	// OtherFields is true if Kind.Convert has to convert the objects of this version to the storage version before the
	// rules can read them. Default then sets all of its defaults.
	OtherFields bool
	// decode is the Decode function of a version with the fields of the storage version; otherwise the strategy has it.
	// See OnDemand.
	decode func(object.Object) ([]string, error)
	// Deprecated is the warning of a deprecated version, and Removed the release of its removal.
	Deprecated, Removed string
	// onDemand is true for a version that is served only if the runtime configuration enables it.
	onDemand bool
}

// Resource returns the kind as a catalog resource, without its text; see Text.Resources.
func (k Kind) Resource() *catalog.Resource {
	stored := k.served(k.Group.Version, k.Group.Rank, k.New)
	stored.Served = !k.OnDemand
	stored.Deprecated, stored.Warning, stored.Removed = k.Deprecated != "", k.Deprecated, k.Removed
	r := &catalog.Resource{
		Group:         k.Group.Name,
		Plural:        k.Plural,
		Singular:      singular(k.Kind),
		Kind:          k.Kind,
		ListKind:      k.Kind + "List",
		ShortNames:    k.Short,
		Categories:    k.Categories,
		Namespaced:    !k.ClusterScoped,
		Versions:      []*catalog.Version{stored},
		Storage:       stored,
		Prefix:        k.Prefix,
		Served:        !k.OnDemand,
		Strategy:      k.Strategy,
		Subresources:  k.Subresources,
		Convert:       k.Convert,
		Restore:       k.Restore,
		Form:          k.Form,
		GroupPriority: k.Group.Priority,
		NoGeneration:  !k.Generation,
	}
	for _, also := range k.Also {
		v := k.served(also.Name, also.Rank, also.New)
		v.Served, v.Strategy = !also.onDemand, also.Strategy
		r.Served = r.Served || v.Served
		v.ReturnsDeleted = v.ReturnsDeleted || also.Lenient
		if also.Strategy == nil {
			v.Strategy = k.rulesOf(also)
		}
		v.Deprecated, v.Warning, v.Removed = also.Deprecated != "", also.Deprecated, also.Removed
		r.Versions = append(r.Versions, v)
	}
	if len(k.Also) > 0 && k.Convert == nil {
		r.Convert = sameFields
	}
	slices.SortStableFunc(r.Versions, func(a, b *catalog.Version) int { return b.Priority - a.Priority })
	if r.Prefix == "" {
		r.Prefix = k.Plural
	}
	if k.Virtual {
		r.Virtual, r.Prefix, r.Verbs, r.NoGeneration = true, "", k.Verbs, true
		if k.Verbs == nil {
			r.Verbs = []string{"create"}
		}
	}
	if k.NoDeleteCollection {
		r.Verbs = []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	}
	return r
}

// served returns a version of the kind as the catalog has it.
func (k Kind) served(name string, rank int, newObject func() any) *catalog.Version {
	root := schemas.TypeID(newObject())
	return &catalog.Version{
		Name:        name,
		Served:      true,
		Columns:     k.Columns,
		Status:      k.Status,
		ResetFields: k.resetFields(),
		Scale:       k.Scale,

		ReturnsDeleted: k.ReturnsDeleted,

		Priority: rank,
		New:      newObject,
		Source:   func() (*apiextensionsv1.JSONSchemaProps, error) { return schemas.Expanded(root) },
		Model:    root,
		Models:   schemas.Definition,
	}
}

// Of completes a kind from its Go type and with common defaults: names are DNS subdomains, a client's status is dropped
// from a new object, and name and time of creation are printed.
func Of[T any](k Kind) Kind {
	k.New = NewOf[T]()
	if k.Strategy == nil {
		k.Strategy = &catalog.Strategy{}
	}
	r := k.Strategy
	if r.Decode == nil {
		r.Decode = DecodeAs[T]
	}
	if r.ValidName == nil {
		r.ValidName = nameIsSubdomain
	}
	if r.Store == nil {
		r.Store = storeAs[T]()
	}
	if k.Status && r.PrepareCreate == nil {
		r.PrepareCreate = func(obj object.Object, _ catalog.Env) { ResetStatus[T](obj) }
	}
	if r.Cells == nil {
		r.Cells, k.Columns = NameAndCreation, []catalog.Column{NameColumn(), CreatedColumn()}
	}
	return k
}

// NewOf returns the New of a kind with the Go type T.
func NewOf[T any]() func() any { return func() any { return new(T) } }

func singular(kind string) string { return strings.ToLower(kind) }
