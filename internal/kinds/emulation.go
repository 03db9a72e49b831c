package kinds

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

// Emulation is the release of Kubernetes that the server emulates, and with which it can share its store; the zero
// value emulates nothing (k8s.io/component-base/compatibility, KEP-4330).
type Emulation struct {
	// Version is the release of the served versions of kinds. MinCompatibility is the oldest release that must be able
	// to read the stored objects, and to run their expressions. Nil means the binary's.
	Version, MinCompatibility *version.Version
	// ForwardCompatible also serves newer stable versions of served resources. RuntimeConfigForwardCompatible serves
	// resources that the runtime configuration names although they came after Version.
	ForwardCompatible, RuntimeConfigForwardCompatible bool
}

var (
	// binary is the release that the server is, without its patch number.
	binary = version.MajorMinor(1, 37)
	// oldest is the oldest release that can be emulated, three before the server's own.
	oldest = version.MajorMinor(1, 34)
)

// component is Kubernetes' component name, which may precede a version.
const component = "kube"

// ParseEmulation parses the flags --emulated-version and --min-compatibility-version, with kube-apiserver's error
// texts. It returns the first error.
func ParseEmulation(emulated, minCompatible []string) (Emulation, error) {
	e := Emulation{Version: binary}
	given, err := parseVersion(emulated)
	if err != nil {
		return Emulation{}, err
	}
	if given != nil {
		e.Version = given
	}
	e.MinCompatibility = version.MajorMinor(e.Version.Major(), e.Version.SubtractMinor(1).Minor())
	if e.MinCompatibility.LessThan(oldest) {
		e.MinCompatibility = oldest
	}
	if given, err = parseVersion(minCompatible); err != nil {
		return Emulation{}, err
	}
	if given != nil {
		e.MinCompatibility = given
	}
	return e, e.check()
}

// parseVersion returns the version for this component, nil if there is none.
func parseVersion(given []string) (*version.Version, error) {
	var out *version.Version
	for _, text := range given {
		name, number, ok := strings.Cut(text, "=")
		if !ok {
			name, number = component, text
		}
		v, err := version.Parse(strings.TrimSpace(number))
		switch name = strings.TrimSpace(name); {
		case err != nil:
			return nil, err
		case v.Patch() != 0:
			return nil, fmt.Errorf("patch version not allowed, got: %s=%s", name, v)
		case name != component:
			return nil, fmt.Errorf("component not registered: %s", name)
		case out != nil:
			return nil, fmt.Errorf("duplicate version flag, %s=%s and %s=%s", name, out, name, v)
		}
		out = version.MajorMinor(v.Major(), v.Minor())
	}
	return out, nil
}

func (e Emulation) check() error {
	var errs []error
	if e.Version.GreaterThan(binary) || e.Version.LessThan(oldest) {
		errs = append(errs,
			fmt.Errorf("emulation version %s is not between [%s, %s]", e.Version, oldest, binary.WithPatch(0)))
	}
	if e.MinCompatibility.GreaterThan(e.Version) || e.MinCompatibility.LessThan(oldest) {
		errs = append(errs, fmt.Errorf("minCompatibilityVersion version %s is not between [%s, %s]",
			e.MinCompatibility, oldest, e.Version))
	}
	return utilerrors.NewAggregate(errs)
}

// Emulates reports whether the server behaves like an older release.
func (e Emulation) Emulates() bool { return e.Version != nil && e.Version.LessThan(binary) }

// AtLeast reports whether the server behaves like release 1.minor or a later one.
func (e Emulation) AtLeast(minor uint) bool { return e.current().AtLeast(version.MajorMinor(1, minor)) }

func (e Emulation) current() *version.Version {
	if e.Version == nil {
		return binary
	}
	return e.Version
}

// Serves reports whether the release serves a version, unless config disables it.
func (e Emulation) Serves(config RuntimeConfig, gvr schema.GroupVersionResource) bool {
	resources := Resources()
	if _, err := config.Apply(resources, e); err != nil {
		return false
	}
	return slices.ContainsFunc(resources, func(r *catalog.Resource) bool {
		v := r.Version(gvr.Version)
		return r.Group == gvr.Group && r.Plural == gvr.Resource && v != nil && v.Served
	})
}

// Alpha returns the sorted alpha versions among kinds that are served although an older release is emulated.
func (e Emulation) Alpha(kinds []*catalog.Resource) []string {
	var out []string
	for _, r := range kinds {
		for _, v := range r.Versions {
			if e.Emulates() && v.Served && strings.Contains(v.Name, "alpha") {
				out = append(out, r.APIVersion(v))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// introduced returns the first release with a version of a kind, from its Go type; zero if it is not annotated.
func introduced(v *catalog.Version) *version.Version {
	if life, ok := v.New().(interface{ APILifecycleIntroduced() (major, minor int) }); ok {
		return release(life.APILifecycleIntroduced())
	}
	return version.MajorMinor(0, 0)
}

// removed reports whether a release no longer has a version of a kind.
func removed(r *catalog.Resource, v *catalog.Version, from *version.Version) bool {
	if r.Group == oldDefinitions.Group && v.Name == oldDefinitions.Version {
		return false // served on purpose, see docs/differences.md
	}
	life, ok := v.New().(interface{ APILifecycleRemoved() (major, minor int) })
	return ok && !release(life.APILifecycleRemoved()).GreaterThan(from)
}

func release(major, minor int) *version.Version {
	return version.MajorMinor(uint(max(0, major)), uint(max(0, minor))) //nolint:gosec // not negative
}

// apply removes kinds and versions that the emulated release does not have (k8s.io/apiserver/pkg/server,
// RemoveUnavailableKinds).
func (e Emulation) apply(kinds []*catalog.Resource, requested *enablement) error {
	gone := map[schema.GroupVersion]bool{} // newer versions; true while none of their resources is served
	for _, r := range kinds {
		if err := e.applyTo(r, requested, gone); err != nil {
			return err
		}
	}
	var none []string
	for gv, empty := range gone {
		if empty && requested.versions[gv] {
			none = append(none, gv.String())
		}
	}
	if len(none) > 0 {
		slices.Sort(none)
		return fmt.Errorf("cannot enable version %s in runtime-config because all the resources have been introduced "+
			"after the current version %s. Consider setting --runtime-config-emulation-forward-compatible=true",
			none[0], e.current())
	}
	return nil
}

// applyTo removes versions of one kind, the least preferred first: a newer one may depend on an older one.
func (e Emulation) applyTo(r *catalog.Resource, requested *enablement, gone map[schema.GroupVersion]bool) error {
	lower := false // a less preferred version is served that is not alpha
	for _, v := range slices.Backward(r.Versions) {
		gv := schema.GroupVersion{Group: r.Group, Version: v.Name}
		gvr := gv.WithResource(r.Plural)
		v.Served = v.Served || e.ForwardCompatible && lower
		if v.Served && removed(r, v, e.current()) {
			v.Served = false
		}
		if !v.Served {
			continue
		}
		if since := introduced(v); since.GreaterThan(e.current()) && !(e.ForwardCompatible && lower) &&
			!(e.RuntimeConfigForwardCompatible && (requested.resources[gvr] || requested.versions[gv])) {
			if requested.resources[gvr] {
				return fmt.Errorf("cannot enable resource %s in runtime-config because it is introduced at %s after the "+
					"current version %s. Consider setting --runtime-config-emulation-forward-compatible=true",
					gvr, since, e.current())
			}
			v.Served = false
			if _, seen := gone[gv]; !seen {
				gone[gv] = true
			}
			continue
		}
		gone[gv] = false
		lower = lower || !strings.Contains(v.Name, "alpha")
	}
	return nil
}

// storeAs sets the storage version of kinds that MinCompatibility cannot read to the most preferred version that it
// can, if there is one. Alpha versions do not count, since no release promises to read those of another one.
func (e Emulation) storeAs(kinds []*catalog.Resource) {
	if e.MinCompatibility == nil {
		return
	}
	for _, r := range kinds {
		if r.Form != nil && r.Form.Version != "" || r.Virtual || r.Secondary ||
			!introduced(r.Storage).GreaterThan(e.MinCompatibility) {
			continue
		}
		for _, v := range r.Versions {
			if !strings.Contains(v.Name, "alpha") && !introduced(v).GreaterThan(e.MinCompatibility) {
				r.Form = rule.StoredAs(r.Group, r.Storage.Name, v.Name).Over(r.Form)
				break
			}
		}
	}
}
