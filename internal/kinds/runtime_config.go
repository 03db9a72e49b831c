package kinds

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// RuntimeConfig enables and disables built-in kinds, in the format of kube-apiserver's --runtime-config
// (k8s.io/apiserver/pkg/server/resourceconfig): "group/version" and "group/version/resource", "v1" for the core group,
// and "api/all", "api/ga", "api/beta" and "api/alpha" for all versions with such names. Values are "true" and "false".
// A resource takes precedence over its version, and both over the "api/" keys.
//
// Disabled kinds still exist: their objects stay in the store, and the server's own controllers see them.
type RuntimeConfig map[string]string

// sweep is a key for all versions with such names.
type sweep struct {
	key     string
	version *regexp.Regexp
}

// sweeps are all sweeps; of two that match a version, the later counts.
var sweeps = []sweep{
	{"api/all", regexp.MustCompile(``)},
	{"api/ga", regexp.MustCompile(`^v\d+$`)},
	{"api/beta", regexp.MustCompile(`^v\d+beta\d+$`)},
	{"api/alpha", regexp.MustCompile(`^v\d+alpha\d+$`)},
}

func isSweep(key string) bool {
	return slices.ContainsFunc(sweeps, func(s sweep) bool { return s.key == key })
}

// registered are the group versions that kube-apiserver 1.37 has types of, served or not.
var registered = map[string][]string{
	"":                             {"v1"},
	"admission.k8s.io":             {"v1", "v1beta1"},
	"admissionregistration.k8s.io": {"v1", "v1alpha1", "v1beta1"},
	"apiextensions.k8s.io":         {"v1", "v1beta1"},
	"apiregistration.k8s.io":       {"v1", "v1beta1"},
	"apps":                         {"v1", "v1beta1", "v1beta2"},
	"authentication.k8s.io":        {"v1", "v1alpha1", "v1beta1"},
	"authorization.k8s.io":         {"v1", "v1beta1"},
	"autoscaling":                  {"v1", "v2"},
	"batch":                        {"v1", "v1beta1"},
	"certificates.k8s.io":          {"v1", "v1alpha1", "v1beta1"},
	"coordination.k8s.io":          {"v1", "v1alpha2", "v1beta1"},
	"discovery.k8s.io":             {"v1", "v1beta1"},
	"events.k8s.io":                {"v1", "v1beta1"},
	"extensions":                   {"v1beta1"},
	"flowcontrol.apiserver.k8s.io": {"v1", "v1beta1", "v1beta2", "v1beta3"},
	"imagepolicy.k8s.io":           {"v1alpha1"},
	"internal.apiserver.k8s.io":    {"v1alpha1"},
	"lifecycle.k8s.io":             {"v1alpha1"},
	"networking.k8s.io":            {"v1", "v1beta1"},
	"node.k8s.io":                  {"v1", "v1alpha1", "v1beta1"},
	"policy":                       {"v1", "v1beta1"},
	"rbac.authorization.k8s.io":    {"v1", "v1alpha1", "v1beta1"},
	"resource.k8s.io":              {"v1", "v1alpha3", "v1beta1", "v1beta2"},
	"scheduling.k8s.io":            {"v1", "v1alpha3", "v1beta1"},
	"storage.k8s.io":               {"v1", "v1alpha1", "v1beta1"},
	"storagemigration.k8s.io":      {"v1", "v1beta1"},
}

// enablement is a RuntimeConfig that has been read.
type enablement struct {
	many      map[string]bool // by the keys of sweeps
	versions  map[schema.GroupVersion]bool
	resources map[schema.GroupVersionResource]bool
}

// Validate returns the first error, in kube-apiserver's words.
func (c RuntimeConfig) Validate() error {
	_, err := c.read()
	return err
}

// Apply enables and disables versions of kinds, in place, and returns the sorted requested versions that are missing:
// versions that only Kubernetes has, and kinds with a closed feature gate. c must be valid. If a release is emulated,
// Apply removes newer kinds and selects storage versions that the other servers can read; it returns an error if a
// newer version is requested.
func (c RuntimeConfig) Apply(
	kinds []*catalog.Resource, emulate Emulation, open ...string,
) (absent []string, err error) {
	e, err := c.read()
	if err != nil {
		return nil, err
	}
	there := map[schema.GroupVersion]bool{}
	for _, r := range kinds {
		for _, v := range r.Versions {
			there[schema.GroupVersion{Group: r.Group, Version: v.Name}] = true
			v.Served = e.serves(r, v)
		}
	}
	err = emulate.apply(kinds, e)
	closed := closeGates(kinds, open)
	emulate.storeAs(kinds)
	for _, r := range kinds {
		r.Served = slices.ContainsFunc(r.Versions, func(v *catalog.Version) bool { return v.Served })
	}
	for _, r := range kinds {
		if !slices.ContainsFunc(kinds, func(twin *catalog.Resource) bool {
			return twin.Served && r.Cohabits == catalog.GroupResource{Group: twin.Group, Resource: twin.Plural}
		}) {
			r.Cohabits = catalog.GroupResource{}
		}
	}
	for gv, on := range e.versions {
		if on && !there[gv] {
			absent = append(absent, gv.String())
		}
	}
	for _, name := range closed {
		if gv, _, _ := strings.Cut(name, " "); e.names(gv) {
			absent = append(absent, name)
		}
	}
	slices.Sort(absent)
	return absent, err
}

// Serves reports whether a resource is served; otherwise is the default.
func (c RuntimeConfig) Serves(gvr schema.GroupVersionResource, otherwise bool) bool {
	e, err := c.read()
	if err != nil {
		return otherwise
	}
	return e.serves(&catalog.Resource{Group: gvr.Group, Plural: gvr.Resource},
		&catalog.Version{Name: gvr.Version, Served: otherwise})
}

// serves reports whether a version of r is served.
func (e *enablement) serves(r *catalog.Resource, v *catalog.Version) bool {
	gv := schema.GroupVersion{Group: r.Group, Version: v.Name}
	served := v.Served
	for _, all := range sweeps {
		on, set := e.many[all.key]
		// A user who enables all versions does not mean versions that no current Kubernetes serves.
		if set && all.version.MatchString(gv.Version) && !(on && gv == oldDefinitions) {
			served = on
		}
	}
	if on, set := e.versions[gv]; set {
		served = on
	}
	if on, set := e.resources[gv.WithResource(r.Plural)]; set {
		served = on
	}
	return served
}

// names reports whether a "group/version/resource" or its version is requested by name.
func (e *enablement) names(name string) bool {
	parts := strings.Split(name, "/")
	gv := schema.GroupVersion{Group: parts[0], Version: parts[1]}
	return e.versions[gv] || e.resources[gv.WithResource(parts[2])]
}

// oldDefinitions is a version that Kubernetes has not served since 1.22.
var oldDefinitions = schema.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1beta1"}

func (c RuntimeConfig) read() (*enablement, error) {
	keys := c.canonical()
	if keys["api/all"] == "false" &&
		!slices.ContainsFunc(slices.Collect(maps.Values(keys)), func(value string) bool { return value != "false" }) {
		return nil, errors.New("invalid with only api/all=false") // it would leave nothing
	}
	e := &enablement{
		many: map[string]bool{}, versions: map[schema.GroupVersion]bool{},
		resources: map[schema.GroupVersionResource]bool{},
	}
	var unknown []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if isSweep(key) {
			continue
		}
		parts := strings.Split(key, "/")
		if len(parts) != 2 && len(parts) != 3 {
			return nil, fmt.Errorf("invalid key %s", key)
		}
		if gv := (schema.GroupVersion{Group: parts[0], Version: parts[1]}); registered[gv.Group] == nil {
			unknown = append(unknown, gv.String())
		}
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("unknown api groups %s", strings.Join(slices.Compact(unknown), ","))
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if err := e.add(key, keys[key]); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// canonical returns c with the core group's version as "/v1", for which kube-apiserver accepts every key with the
// prefix "v1/", and without ignored entries.
func (c RuntimeConfig) canonical() map[string]string {
	out := map[string]string{}
	for key, value := range c {
		switch {
		case key == "api/legacy":
		case key == "v1", key == "api/v1", strings.HasPrefix(key, "v1/"), strings.HasPrefix(key, "api/v1/"):
			out["/v1"] = value
		default:
			out[key] = value
		}
	}
	return out
}

// add adds one entry of a registered group.
func (e *enablement) add(key, value string) error {
	if isSweep(key) {
		if value != "true" && value != "false" {
			return fmt.Errorf("invalid value %s=%s", key, value)
		}
		e.many[key] = value == "true"
		return nil
	}
	parts := strings.Split(key, "/")
	gv := schema.GroupVersion{Group: parts[0], Version: parts[1]}
	if !slices.Contains(registered[gv.Group], gv.Version) {
		return fmt.Errorf("group version %s that has not been registered", gv)
	}
	on := true
	if value != "" {
		var err error
		if on, err = strconv.ParseBool(value); err != nil {
			return fmt.Errorf("invalid value of %s: %s, err: %w", key, value, err)
		}
	}
	if len(parts) == 2 {
		e.versions[gv] = on
		return nil
	}
	if plural := parts[2]; plural != strings.ToLower(plural) {
		return fmt.Errorf("invalid key %s: group/version/resource and resource is always lowercase plural, not %q", key,
			plural)
	}
	e.resources[gv.WithResource(parts[2])] = on
	return nil
}
