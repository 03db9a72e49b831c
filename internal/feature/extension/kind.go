// Package extension adds kinds that are written in Go, or described by an embedded manifest, to a server. The public
// package of the same name is based on it.
//
// It is a part beside the core. A Kind becomes a resource of the catalog as a CustomResourceDefinition does, with the
// same schemas, rules, columns and subresources. But there is no such object in the store, and clients cannot change
// it. Go functions add defaults, validation and subresources that a definition cannot express.
//
// Kinds are immutable once the server is created. Their functions must be safe for concurrent use.
package extension

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/internal/api/secrecy"
	"github.com/bowsprit/bowsprit/internal/object"
)

// Kind is one kind of object.
type Kind struct {
	// Definition is a CustomResourceDefinition, as decoded JSON. It is not modified.
	Definition object.Object
	// Default adds defaults beyond the schema, by version; it runs on each write and read.
	Default map[string]func(obj object.Object)
	// Validate returns the errors of an object beyond its schema, by version.
	Validate map[string]Check
	// Paths are subresources other than status and scale, by name.
	Paths map[string]Path
	// Storage stores the objects; nil means the server's own store.
	Storage Storage
	// Poll is how often Storage is listed again; 0 is never.
	Poll time.Duration
	// ReadOnly prevents writes by clients.
	ReadOnly bool
}

// Check validates an object; old is nil for a creation, and subresource is "" or "status".
type Check func(obj, old object.Object, subresource string) field.ErrorList

// Path is a subresource that a function serves.
type Path struct {
	// Methods are its HTTP methods, such as POST; empty means GET.
	Methods []string
	// LongRunning exempts its requests from the request timeout.
	LongRunning bool
	// Serve answers a request. It must not modify obj.
	Serve func(ctx context.Context, obj object.Object, w http.ResponseWriter, r *http.Request) error
}

// Resource returns the catalog's entry. Its errors equal a server's errors on the creation of the definition.
func (k *Kind) Resource() (*catalog.Resource, error) {
	raw, err := k.established()
	if err != nil {
		return nil, err
	}
	def, err := crd.DecodeWithoutSchemas(raw)
	if err != nil {
		return nil, err
	}
	source := func() ([]byte, error) { return raw, nil }
	r, err := crd.Resource(def, 1, source)
	if err != nil {
		return nil, err
	}
	crd.MarkSensitive(r, raw, source)
	r.Fixed = true
	if k.ReadOnly {
		r.Verbs = []string{"get", "list", "watch"}
	}
	for _, v := range r.Versions {
		v.Strategy = k.strategy(v)
	}
	for _, name := range slices.Sorted(maps.Keys(k.Paths)) {
		r.Subresources = append(r.Subresources, catalog.Subresource{
			Name: name, Verbs: k.Paths[name].verbs(), LongRunning: k.Paths[name].LongRunning,
			Kind: metav1.GroupVersionKind{Group: r.Group, Version: r.Storage.Name, Kind: r.Kind},
		})
	}
	return r, nil
}

// established returns the definition as a server has it that has accepted it.
func (k *Kind) established() ([]byte, error) {
	if k.Definition == nil {
		return nil, errors.New("a kind has no definition")
	}
	obj := runtime.DeepCopyJSON(k.Definition)
	if kind := object.String(obj, "kind"); kind != "CustomResourceDefinition" ||
		object.String(obj, "apiVersion") != apiextensionsv1.SchemeGroupVersion.String() {
		return nil, fmt.Errorf("a definition is a %s CustomResourceDefinition, not %s %q",
			apiextensionsv1.SchemeGroupVersion, object.String(obj, "apiVersion"), kind)
	}
	name := object.String(obj, "metadata", "name")
	rules := crd.Rules()
	unknown, err := rules.Decode(obj)
	if err != nil {
		return nil, fmt.Errorf("definition %s: %w", name, err)
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("definition %s: unknown field %q", name, unknown[0])
	}
	rules.Default(obj)
	meta := object.Meta(obj)
	// The same in each process, so that replicas agree.
	meta["uid"] = uuid.NewSHA1(uuid.NameSpaceURL, []byte("crd:"+name)).String()
	rules.PrepareCreate(obj, catalog.Env{Now: time.Unix(0, 0)})
	if errs := rules.Validate(context.Background(), obj); len(errs) > 0 {
		return nil, fmt.Errorf("definition %s: %w", name, errs.ToAggregate())
	}
	rules.Store(obj)
	return json.Marshal(obj)
}

// strategy returns the checks and defaults of a version beyond its schema, or nil if there are none.
func (k *Kind) strategy(v *catalog.Version) *catalog.Strategy {
	fill, check := k.Default[v.Name], k.Validate[v.Name]
	if fill == nil && check == nil {
		return nil
	}
	s := &catalog.Strategy{Default: fill}
	if check == nil {
		return s
	}
	s.Validate = func(ctx context.Context, obj catalog.Object) field.ErrorList {
		if errs := bySchema(ctx, v, obj, nil, ""); len(errs) > 0 {
			return errs // the function may rely on the shape
		}
		return check(obj, nil, "")
	}
	s.ValidateUpdate = func(ctx context.Context, obj, old catalog.Object, subresource string) field.ErrorList {
		if errs := bySchema(ctx, v, obj, old, subresource); len(errs) > 0 {
			return errs
		}
		return check(obj, old, subresource)
	}
	return s
}

// bySchema returns the schema errors of an object, as for objects without a strategy.
func bySchema(ctx context.Context, v *catalog.Version, obj, old object.Object, subresource string) field.ErrorList {
	sch, err := v.Schema()
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	if sch == nil {
		return nil
	}
	var errs field.ErrorList
	if subresource == "status" {
		errs, err = sch.ValidateStatus(ctx, nil, obj, old, secrecy.Warner(ctx, v))
	} else {
		errs, err = sch.ValidateAfter(ctx, nil, obj, old, secrecy.Warner(ctx, v))
	}
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return errs
}

// verbs returns the sorted verbs that authorize requests with the path's methods.
func (p Path) verbs() []string {
	known := map[string]string{
		http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch",
		http.MethodDelete: "delete",
	}
	if len(p.Methods) == 0 {
		return []string{"get"}
	}
	var all []string
	for _, method := range p.Methods {
		if verb := known[method]; verb != "" && !slices.Contains(all, verb) {
			all = append(all, verb)
		}
	}
	slices.Sort(all)
	return all
}
