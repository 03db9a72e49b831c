package rule

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

// Resources returns kinds as catalog resources, completed by the text. Each call creates new values, which a catalog
// may own.
func (t *Text) Resources(kinds ...Kind) []*catalog.Resource {
	out := make([]*catalog.Resource, 0, len(kinds))
	for _, k := range kinds {
		if c := t.Columns(k.Kind); c != nil {
			k.Columns = c
		}
		for i, s := range k.strategies() {
			k.fill(t, s)
			k.setRules(t, s, i)
			k.prepare(s)
		}
		out = append(out, k.Resource())
	}
	return out
}

// strategies returns the strategies of all versions that have one: the storage version's, then Also's.
func (k Kind) strategies() []*catalog.Strategy {
	all := []*catalog.Strategy{k.Strategy}
	for _, v := range k.Also {
		if v.Strategy != nil {
			all = append(all, v.Strategy)
		}
	}
	return all
}

// fill runs the defaults of the text before the defaults in code.
func (k Kind) fill(t *Text, s *catalog.Strategy) {
	if !t.hasDefaults(k.Kind) {
		return
	}
	computed := s.Default
	s.Default = func(obj object.Object) {
		t.fill(k.Kind, obj)
		if computed != nil {
			computed(obj)
		}
	}
}

// setRules sets the rules of a strategy, the i-th of k.strategies, to the rules of the text, unless it has its own.
func (k Kind) setRules(t *Text, s *catalog.Strategy, i int) {
	inStorage := func(obj object.Object) object.Object { return obj }
	if i > 0 {
		inStorage = k.inStorageVersion(k.Also[i-1])
	}
	if s.Validate == nil {
		s.Validate = func(ctx context.Context, obj object.Object) field.ErrorList {
			return append(k.checkFinalizers(obj), t.Create(ctx, k.Kind, inStorage(obj))...)
		}
	}
	if s.ValidateUpdate == nil {
		s.ValidateUpdate = func(ctx context.Context, obj, old object.Object, subresource string) field.ErrorList {
			return append(k.checkFinalizers(obj),
				t.Update(ctx, k.Kind, inStorage(obj), inStorage(old), subresource)...)
		}
	}
	if s.Warnings == nil {
		s.Warnings = k.warnings
	}
}

// prepare completes the functions that prepare objects.
func (k Kind) prepare(s *catalog.Strategy) {
	if s.PrepareUpdate == nil {
		s.PrepareUpdate = k.prepareUpdate
	}
	if k.DropGated == nil {
		return
	}
	create, update := s.PrepareCreate, s.PrepareUpdate
	s.PrepareCreate = func(obj object.Object, e catalog.Env) {
		k.DropGated(obj, nil)
		if create != nil {
			create(obj, e)
		}
	}
	s.PrepareUpdate = func(obj, old object.Object, subresource string, e catalog.Env) {
		if subresource != "status" {
			k.DropGated(obj, old)
		}
		update(obj, old, subresource, e)
	}
}

// inStorageVersion returns a function that converts an object of another version of the kind to the version of the
// rules.
func (k Kind) inStorageVersion(from *Version) func(object.Object) object.Object {
	return func(obj object.Object) object.Object {
		out := runtime.DeepCopyJSON(obj)
		if k.Convert(&catalog.Version{Name: from.Name}, &catalog.Version{Name: k.Group.Version}, out) != nil {
			return obj
		}
		return out
	}
}

func (k Kind) checkFinalizers(obj object.Object) field.ErrorList {
	if k.AnyFinalizer {
		return nil
	}
	return CheckFinalizers(finalizersOf(obj))
}

// warnings returns Kubernetes' warnings about an accepted object: ineffective fields, definitions that hide one
// another, surprising names. old is nil for a creation, subresource "" for the object itself.
func (k Kind) warnings(obj, old object.Object, subresource string) []string {
	warn := k.Warn
	switch subresource {
	case "":
	case "status":
		warn = k.WarnStatus
	default:
		return nil
	}
	if warn == nil {
		return nil
	}
	w := &Warnings{Obj: obj, Old: old}
	warn(w)
	return w.Texts
}
