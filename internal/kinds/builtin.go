// Package kinds holds the kinds that ship with the server: those of k8s.io/api that Kubernetes 1.36 serves by default,
// and CustomResourceDefinition itself.
//
// Nothing on the path of a request knows a built-in kind by name. Resources gives each as a catalog.Resource, the same
// thing that a CustomResourceDefinition becomes, and what a schema cannot say stands in its catalog.Rules. A kind is an
// entry in one of the tables kinds_*.go, a schema under schemas/ that package gen derives from the published Go types,
// and, if it needs any, a file of rules named after it.
//
// Rules are pure and safe for concurrent use. Those that change an object work on its decoded JSON in place; those that
// judge it read it through its Go type, which Decode has proven to fit. Error texts, field paths and their order are
// kube-apiserver's (pkg/apis/*/validation and pkg/registry of Kubernetes 1.36).
package kinds

import (
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/check"
)

// Resources returns the built-in kinds. Each call makes new values, which a catalog may own.
func Resources() []*catalog.Resource {
	tables := [][]kind{coreKinds(), workloadKinds(), networkKinds(), storageKinds(), accessKinds(), reviewKinds(),
		admissionKinds(), controlKinds()}
	static, columns, checks := loadDefaults(), loadColumns(), check.New()
	var out []*catalog.Resource
	for _, table := range tables {
		for _, k := range table {
			if c, ok := columns[k.kind]; ok {
				k.columns = c
			}
			k.fill(static)
			k.judge(checks)
			k.prepare()
			out = append(out, k.resource())
		}
	}
	alias := eventAlias(columns)
	for _, r := range out {
		if r.Prefix == alias.Prefix {
			r.Cohabits = catalog.GroupResource{Group: alias.Group, Resource: alias.Plural}
			alias.Cohabits = catalog.GroupResource{Group: r.Group, Resource: r.Plural}
		}
	}
	return append(out, alias)
}

// KeepEvents has events among kinds live for ttl after their last write; 0 is for ever.
func KeepEvents(kinds []*catalog.Resource, ttl time.Duration) {
	for _, r := range kinds {
		if r.Strategy != nil && r.Strategy.TTL > 0 {
			r.Strategy.TTL = ttl
		}
	}
}

// fill puts the static defaults of the kind before those of its rules.
func (k kind) fill(static defaults) {
	if static[k.kind] == nil {
		return
	}
	for _, rules := range k.allRules() {
		computed := rules.Default
		rules.Default = func(obj catalog.Object) {
			static.apply(k.kind, obj)
			if computed != nil {
				computed(obj)
			}
		}
	}
}

// judge makes the checks those of the kind, unless its rules have some of their own.
func (k kind) judge(checks *check.Checker) {
	for i, rules := range k.allRules() {
		inStorage := func(obj catalog.Object) catalog.Object { return obj }
		if i > 0 {
			inStorage = k.inStorageVersion(k.also[i-1])
		}
		if rules.Validate == nil {
			rules.Validate = func(obj catalog.Object) errorList {
				return append(k.checkFinalizers(obj), checks.Create(k.kind, inStorage(obj))...)
			}
		}
		if rules.Warnings == nil {
			rules.Warnings = func(obj, old catalog.Object, subresource string) []string {
				return check.Advise(k.kind, obj, old, subresource)
			}
		}
		if rules.ValidateUpdate == nil {
			rules.ValidateUpdate = func(obj, old catalog.Object, subresource string) errorList {
				return append(k.checkFinalizers(obj),
					checks.Update(k.kind, inStorage(obj), inStorage(old), subresource)...)
			}
		}
	}
}

// prepare completes the rules that prepare objects.
func (k kind) prepare() {
	for _, rules := range k.allRules() {
		if rules.PrepareUpdate == nil {
			rules.PrepareUpdate = k.prepareUpdate
		}
		if k.podSpec == nil {
			continue
		}
		create, update := rules.PrepareCreate, rules.PrepareUpdate
		rules.PrepareCreate = func(obj catalog.Object, e catalog.Env) {
			dropGated(catalog.At(obj, k.podSpec...), nil)
			if create != nil {
				create(obj, e)
			}
		}
		rules.PrepareUpdate = func(obj, old catalog.Object, subresource string, e catalog.Env) {
			if subresource != "status" {
				dropGated(catalog.At(obj, k.podSpec...), catalog.At(old, k.podSpec...))
			}
			update(obj, old, subresource, e)
		}
	}
}

// inStorageVersion returns a function that turns an object of another version of the kind into one of the version that
// checks are written for.
func (k kind) inStorageVersion(from *version) func(catalog.Object) catalog.Object {
	return func(obj catalog.Object) catalog.Object {
		out := runtime.DeepCopyJSON(obj)
		if k.convert(&catalog.Version{Name: from.name}, &catalog.Version{Name: k.group.version}, out) != nil {
			return obj
		}
		return out
	}
}

func (k kind) checkFinalizers(obj catalog.Object) errorList {
	if k.anyFinalizer {
		return nil
	}
	return checkFinalizers(finalizersOf(obj))
}

// allRules returns the rules of all versions that have some of their own: those of the storage version, then k.also's.
func (k kind) allRules() []*catalog.Strategy {
	all := []*catalog.Strategy{k.rules}
	for _, v := range k.also {
		if v.rules != nil {
			all = append(all, v.rules)
		}
	}
	return all
}

// kind is what is known about a built-in kind beside its schema.
//
// Names, categories, storage prefixes, columns and the like are written in tables because no published source has
// them: in Kubernetes they are code of each kind's registry.
type kind struct {
	group         // of the storage version
	kind, plural  string
	short         []string
	categories    []string
	clusterScoped bool
	// virtual is true if objects are not stored; verbs are then what can be done with them, nil for answering a POST.
	virtual bool
	verbs   []string
	// prefix is where kube-apiserver keeps the kind in etcd, if that is not the plural.
	prefix string
	status bool
	scale  *catalog.Scale
	// generation is true if metadata.generation is maintained.
	generation bool
	// statusOnly is true if an update of status cannot change metadata.
	statusOnly bool
	// reaches are the endpoints whose reach is not what follows from the above, by subresource. See reach.
	reaches map[string]catalog.ResetFields
	// podSpec is where the spec of a pod, or of the pods to be made, is; nil if there is none.
	podSpec []string
	// deprecated is the warning that goes with every answer about the kind, usually "".
	deprecated string
	// onDemand is true if the storage version too is served only if RuntimeConfig asks for it.
	onDemand bool
	// anyFinalizer is true for the few kinds whose finalizers may have any name.
	anyFinalizer bool
	// noDeleteCollection is true for the kinds that cannot be deleted as a collection.
	noDeleteCollection bool
	// returnsDeleted is true for the kinds whose deletion answers the object.
	returnsDeleted bool
	subresources   []catalog.Subresource
	// new returns a pointer to a fresh value of the Go type.
	new     func() any
	columns []catalog.Column
	rules   *catalog.Strategy

	// also are other versions, none for nearly all kinds; those with rules of their own come first.
	also []*version
	// convert is needed if one of also has other fields: see catalog.Resource.Convert.
	convert func(from, to *catalog.Version, obj catalog.Object) error
	// form is how objects are stored, if not as JSON of the storage version: see catalog.Resource.Form.
	form *catalog.Form
}

// group is an API group in one version. The priorities are those of kube-apiserver's own APIService objects.
type group struct {
	name, version string
	// priority orders groups in discovery.
	priority int
	// rank orders the group's versions.
	rank int
}

// version is one that objects are not stored in.
type version struct {
	name  string
	rank  int
	new   func() any
	rules *catalog.Strategy
	// decode is the Decode rule of a version that has the fields of the storage version, and else its rules; see
	// onDemand.
	decode func(catalog.Object) ([]string, error)
	// deprecated is the warning of a version that is no longer recommended.
	deprecated string
	// onDemand is true of a version that is served only if RuntimeConfig asks for it.
	onDemand bool
}

func (k kind) resource() *catalog.Resource {
	stored := k.served(k.group.version, k.rank, k.new)
	stored.Served = !k.onDemand
	stored.Deprecated, stored.Warning = k.deprecated != "", k.deprecated
	r := &catalog.Resource{
		Group:         k.group.name,
		Plural:        k.plural,
		Singular:      singular(k.kind),
		Kind:          k.kind,
		ListKind:      k.kind + "List",
		ShortNames:    k.short,
		Categories:    k.categories,
		Namespaced:    !k.clusterScoped,
		Versions:      []*catalog.Version{stored},
		Storage:       stored,
		Prefix:        k.prefix,
		Served:        !k.onDemand,
		Strategy:      k.rules,
		Subresources:  k.subresources,
		Convert:       k.convert,
		Form:          k.form,
		GroupPriority: k.priority,
		NoGeneration:  !k.generation,

		ReturnsDeleted: k.returnsDeleted,
	}
	for _, also := range k.also {
		v := k.served(also.name, also.rank, also.new)
		v.Served, v.Strategy = !also.onDemand, also.rules
		if also.rules == nil {
			v.Strategy = k.rulesOf(also)
		}
		v.Deprecated, v.Warning = also.deprecated != "", also.deprecated
		r.Versions = append(r.Versions, v)
	}
	if len(k.also) > 0 && k.convert == nil {
		r.Convert = sameFields
	}
	slices.SortStableFunc(r.Versions, func(a, b *catalog.Version) int { return b.Priority - a.Priority })
	if r.Prefix == "" {
		r.Prefix = k.plural
	}
	if k.virtual {
		r.Virtual, r.Prefix, r.Verbs, r.NoGeneration = true, "", k.verbs, true
		if k.verbs == nil {
			r.Verbs = []string{"create"}
		}
	}
	if k.noDeleteCollection {
		r.Verbs = []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	}
	return r
}

// served returns a version of the kind as the catalog has it.
func (k kind) served(name string, rank int, newObject func() any) *catalog.Version {
	root := typeID(newObject())
	return &catalog.Version{
		Name:        name,
		Served:      true,
		Columns:     k.columns,
		Status:      k.status,
		ResetFields: k.reach(),
		Scale:       k.scale,
		Priority:    rank,
		New:         newObject,
		Source:      func() (*apiextensionsv1.JSONSchemaProps, error) { return source(root) },
		Model:       root,
		Models:      definition,
	}
}

// of completes an entry of a table with what follows from the Go type and what most kinds have in common: names are DNS
// subdomains, a status that a client sends with a new object is dropped, and name and time of creation are printed.
func of[T any](k kind) kind {
	k.new = newOf[T]()
	if k.rules == nil {
		k.rules = &catalog.Strategy{}
	}
	r := k.rules
	if r.Decode == nil {
		r.Decode = decode[T]
	}
	if r.ValidName == nil {
		r.ValidName = nameIsSubdomain
	}
	if r.Store == nil {
		r.Store = storeAs[T]()
	}
	if k.status && r.PrepareCreate == nil {
		r.PrepareCreate = func(obj catalog.Object, _ catalog.Env) { resetStatus[T](obj) }
	}
	if r.Cells == nil {
		r.Cells, k.columns = nameAndCreation, []catalog.Column{nameColumn(), createdColumn()}
	}
	return k
}

func newOf[T any]() func() any { return func() any { return new(T) } }
