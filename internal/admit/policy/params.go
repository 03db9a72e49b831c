package policy

import (
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// paramKind is where the parameters of a policy are found.
type paramKind struct {
	resource *catalog.Resource
	version  *catalog.Version
}

// paramKind resolves spec.paramKind of a policy; nil, nil if it names none.
func (c *Config) paramKind(kind *admissionregistrationv1.ParamKind) (*paramKind, error) {
	if kind == nil {
		return nil, nil
	}
	gv, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("failed to parse paramKind APIVersion: %w", err)
	}
	var found *paramKind
	if g := c.Catalog.Snapshot().Group(gv.Group); g != nil {
		g.Each(func(r *catalog.Resource) {
			if v := r.Version(gv.Version); r.Kind == kind.Kind && r.Served && v != nil && v.Served {
				found = &paramKind{resource: r, version: v}
			}
		})
	}
	if found == nil {
		return nil, fmt.Errorf("failed to find resource referenced by paramKind: '%v'", gv.WithKind(kind.Kind))
	}
	return found, nil
}

// errNoParams is the error of a binding that denies writes without parameters.
var errNoParams = errors.New("no params found for policy binding with `Deny` parameterNotFoundAction")

// withoutParams are the parameters of a policy without any; read only.
var withoutParams = []map[string]any{nil}

// params returns the parameters that a binding selects for an object in namespace ("" for none), each decoded; a single
// nil stands for a policy or binding without parameters. An empty list means that the binding has no effect.
//
// They include all writes acknowledged before, so that a client's new parameters apply at once.
func (c *Config) params(
	ctx context.Context, kind *paramKind, ref *admissionregistrationv1.ParamRef, namespace string,
) ([]map[string]any, error) {
	if kind == nil || ref == nil {
		return withoutParams, nil
	}
	where := ""
	switch {
	case !kind.resource.Namespaced && ref.Namespace != "":
		return nil, errors.New("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
	case !kind.resource.Namespaced:
	case ref.Namespace != "":
		where = ref.Namespace
	case namespace == "":
		return nil, errors.New("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
	default:
		where = namespace
	}
	entries, err := c.paramEntries(ctx, kind, ref, where)
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 && ref.ParameterNotFoundAction != nil &&
		*ref.ParameterNotFoundAction == admissionregistrationv1.DenyAction {
		return nil, errNoParams
	}
	params := make([]map[string]any, 0, len(entries))
	for _, e := range entries {
		obj, err := c.Read(ctx, kind.resource, kind.version, e)
		if err != nil {
			return nil, err
		}
		params = append(params, obj)
	}
	return params, nil
}

func (c *Config) paramEntries(
	ctx context.Context, kind *paramKind, ref *admissionregistrationv1.ParamRef, namespace string,
) (entries []*watchcache.Entry, err error) {
	if _, err := c.View.Fresh(ctx); err != nil {
		return nil, err
	}
	objects := c.View.Collection(kind.resource.Prefix).Snapshot()
	switch {
	case ref.Name != "" && ref.Selector != nil:
		return nil, errors.New("paramRef.name and paramRef.selector are mutually exclusive")
	case ref.Name != "":
		if e := objects.Get(namespace, ref.Name); e != nil {
			entries = append(entries, e)
		}
	case ref.Selector != nil:
		selector, err := metav1.LabelSelectorAsSelector(ref.Selector)
		if err != nil {
			return nil, err
		}
		objects.Scan(namespace, "", func(e *watchcache.Entry) bool {
			if selector.Matches(labels.Set(e.Labels)) {
				entries = append(entries, e)
			}
			return true
		})
	default:
		return nil, errors.New("one of name or selector must be provided")
	}
	return entries, nil
}
