package kinds

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// onDemand is the version of a kind in g, of Go type T, that Kubernetes serves only if asked to. It has the fields,
// defaults and rules of the version that objects are stored in.
func onDemand[T any](g group) []*version {
	return []*version{
		{
			name: g.version, rank: g.rank, new: newOf[T](), decode: decode[T], deprecated: outdated(g, new(T)),
			onDemand: true,
		},
	}
}

// sameFields converts between versions that differ in nothing but their names.
func sameFields(_, _ *catalog.Version, _ catalog.Object) error { return nil }

// rulesOf returns the rules of a version of onDemand, once those of the storage version are complete. What names the
// Go type or the version in errors is its own.
func (k kind) rulesOf(v *version) *catalog.Strategy {
	own := *k.rules
	own.Decode = v.decode
	own.UnknownField = strings.ReplaceAll(own.UnknownField, k.group.name+"/"+k.group.version, k.group.name+"/"+v.name)
	return &own
}

// minor is that of the Kubernetes 1.x whose API this is.
const minor = 36

// outdated returns the warning about a version by what its Go type says of its life, "" if it is not deprecated yet.
func outdated(g group, typed any) string {
	life, ok := typed.(interface {
		APILifecycleDeprecated() (major, minor int)
		APILifecycleRemoved() (major, minor int)
	})
	if !ok {
		return ""
	}
	major, since := life.APILifecycleDeprecated()
	if major != 1 || since > minor {
		return ""
	}
	goneMajor, goneMinor := life.APILifecycleRemoved()
	text := fmt.Sprintf("%s/%s %s is deprecated in v%d.%d+, unavailable in v%d.%d+", g.name, g.version,
		reflect.TypeOf(typed).Elem().Name(), major, since, goneMajor, goneMinor)
	if replaced, ok := typed.(interface {
		APILifecycleReplacement() schema.GroupVersionKind
	}); ok {
		by := replaced.APILifecycleReplacement()
		text += fmt.Sprintf("; use %s %s", by.GroupVersion(), by.Kind)
	}
	return text
}
