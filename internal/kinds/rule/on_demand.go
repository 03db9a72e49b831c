package rule

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

// OnDemand returns the version of a kind in g, of Go type T, that Kubernetes serves only if enabled. It has the fields,
// defaults and rules of the storage version, and the fields set in the result.
func OnDemand[T any](g Group) []*Version {
	warning, removed := Outdated(g, new(T))
	return []*Version{
		{
			Name: g.Version, Rank: g.Rank, New: NewOf[T](), decode: DecodeAs[T], Deprecated: warning, Removed: removed,
			onDemand: true,
		},
	}
}

// Newer returns the version of a kind in g, of Go type T, that is served by default although it is not stored yet.
func Newer[T any](g Group) []*Version {
	v := OnDemand[T](g)
	v[0].onDemand = false
	return v
}

// sameFields converts between versions that differ only in their names.
func sameFields(_, _ *catalog.Version, _ object.Object) error { return nil }

// rulesOf returns the rules of a version of onDemand, once the rules of the storage version are complete. Errors name
// its own Go type and version.
func (k Kind) rulesOf(v *Version) *catalog.Strategy {
	own := *k.Strategy
	own.Decode = v.decode
	own.UnconditionalUpdate = own.UnconditionalUpdate || v.Lenient
	switch {
	case v.OtherFields:
		own = *k.converted(v)
	case v.Default != nil:
		common := own.Default
		own.Default = func(obj object.Object) {
			v.Default(obj)
			if common != nil {
				common(obj)
			}
		}
	}
	own.UnknownField = strings.ReplaceAll(own.UnknownField, k.Group.Name+"/"+k.Group.Version, k.Group.Name+"/"+v.Name)
	return &own
}

// minor is the minor version of the served API, Kubernetes 1.x.
const minor = 37

// Outdated returns the deprecation warning about a version and the release of its removal, from the lifecycle methods
// of its Go type; both are "" if it is not deprecated yet.
func Outdated(g Group, typed any) (warning, removed string) {
	life, ok := typed.(interface {
		APILifecycleDeprecated() (major, minor int)
		APILifecycleRemoved() (major, minor int)
	})
	if !ok {
		return "", ""
	}
	major, since := life.APILifecycleDeprecated()
	if major != 1 || since > minor {
		return "", ""
	}
	goneMajor, goneMinor := life.APILifecycleRemoved()
	removed = fmt.Sprintf("%d.%d", goneMajor, goneMinor)
	text := fmt.Sprintf("%s/%s %s is deprecated in v%d.%d+, unavailable in v%s+", g.Name, g.Version,
		reflect.TypeOf(typed).Elem().Name(), major, since, removed)
	if replaced, ok := typed.(interface {
		APILifecycleReplacement() schema.GroupVersionKind
	}); ok {
		by := replaced.APILifecycleReplacement()
		text += fmt.Sprintf("; use %s %s", by.GroupVersion(), by.Kind)
	}
	return text, removed
}
