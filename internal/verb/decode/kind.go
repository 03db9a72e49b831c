package decode

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// Kinds holds the kinds that have Go types in kube-apiserver. It is safe for concurrent use.
type Kinds struct {
	catalog *catalog.Catalog
	actions map[schema.GroupVersionKind]bool
}

// NewKinds returns the Kinds of a catalog. actions are the kinds of the bodies of actions, which belong to no resource.
func NewKinds(c *catalog.Catalog, actions map[schema.GroupVersionKind]bool) *Kinds {
	return &Kinds{catalog: c, actions: actions}
}

// Same refuses a body of another kind than the endpoint's, for kinds with a Go type. The errors are those of
// Kubernetes' conversion between Go types.
func (k *Kinds) Same(obj object.Object, want schema.GroupVersionKind) error {
	got := KindOf(obj)
	if got == want {
		return nil
	}
	if why := k.Unlike(got, want); why != nil {
		return codec.Unhandled(obj, why, want)
	}
	return codec.OtherVersion(got.GroupVersion(), want.GroupVersion())
}

// Unlike returns the reason why an object of kind got cannot be converted to kind want; nil if both are versions of one
// kind.
func (k *Kinds) Unlike(got, want schema.GroupVersionKind) error {
	switch {
	case !k.registered(got, want.Group):
		return errors.New(NotRegistered(got.Kind, got.GroupVersion().String()))
	case got.Kind != want.Kind || kindPackage(got) != kindPackage(want):
		return fmt.Errorf("converting (%s.%s) to (%s.%s): unknown conversion", got.Version, got.Kind, kindPackage(want),
			want.Kind)
	}
	return nil
}

// registered reports whether kube-apiserver has a Go type for the kind when it decodes a body of the group. The
// component that serves definitions registers only its own group.
func (k *Kinds) registered(kind schema.GroupVersionKind, group string) bool {
	const definitions = "apiextensions.k8s.io"
	if (kind.Group == definitions) != (group == definitions) {
		return false
	}
	if kind.Group == "" && kind.Version == "v1" && kind.Kind == "Status" || ofScale(kind) || k.actions[kind] ||
		isUnserved(kind) {
		return true
	}
	if isOptions(kind.Kind) {
		return k.builtin(kind.GroupVersion())
	}
	r := k.catalog.Snapshot().ByKind(kind.Group, strings.TrimSuffix(kind.Kind, "List"))
	return r != nil && !r.Custom() && r.Version(kind.Version) != nil
}

// builtin reports whether there are built-in kinds in the version of a group, served or not.
func (k *Kinds) builtin(gv schema.GroupVersion) bool {
	for kind := range unservedKinds() {
		if kind.GroupVersion() == gv {
			return true
		}
	}
	found := false
	k.catalog.Snapshot().Resources(func(r *catalog.Resource) {
		found = found || r.Group == gv.Group && !r.Custom() && r.Version(gv.Version) != nil
	})
	return found
}

// ofScale reports whether the kind is a Scale, in any version registered in kube-apiserver.
func ofScale(kind schema.GroupVersionKind) bool {
	return kind.Kind == "Scale" && slices.Contains(
		[]string{"autoscaling/v1", "apps/v1beta1", "apps/v1beta2", "extensions/v1beta1"}, kind.GroupVersion().String())
}

// kindPackage is GoPackage of the kind's group, except for scales, which share one package, and kinds that have moved
// out of the group extensions.
func kindPackage(kind schema.GroupVersionKind) string {
	if kind.Kind == "Scale" {
		return "autoscaling"
	}
	if kind.Group == "extensions" {
		return extensionsPackages[kind.Kind]
	}
	return GoPackage(kind.Group)
}

// KindOf returns the kind in an object's apiVersion and kind.
func KindOf(obj object.Object) schema.GroupVersionKind {
	gv, _ := schema.ParseGroupVersion(object.String(obj, "apiVersion"))
	return gv.WithKind(object.String(obj, "kind"))
}

// NotRegistered is the text of Kubernetes' runtime.NotRegisteredErr, which names the source line that creates its
// scheme.
func NotRegistered(kind, version string) string {
	return fmt.Sprintf("no kind %q is registered for version %q in scheme \"pkg/runtime/scheme.go:111\"", kind, version)
}

// GoPackage returns the name of Kubernetes' package for the unversioned types of a group, which appears in errors.
func GoPackage(group string) string {
	name, _, _ := strings.Cut(group, ".")
	switch group {
	case "", "events.k8s.io":
		return "core"
	case "internal.apiserver.k8s.io":
		return "apiserverinternal"
	}
	return name
}
