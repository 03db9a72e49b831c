package kinds

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/admission"
	"github.com/bowsprit/bowsprit/internal/kinds/core"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

//go:embed features.txt
var featuresText string

// relaxedServiceNames is the feature for names of services that begin with a digit.
const relaxedServiceNames = "RelaxedServiceNameValidation"

// comparingTolerations is the feature for tolerations of taints with a value above or below a number.
const comparingTolerations = "TaintTolerationComparisonOperators"

// recreatingSets is the feature for stateful sets that delete all pods before they create new ones.
const recreatingSets = "StatefulSetRecreateStrategy"

// groupPreemption is the feature for groups of pods that never preempt other pods.
const groupPreemption = "PodGroupPreemptionPolicy"

// ShardedListAndWatch is the feature for lists and watches of a part of a collection.
const ShardedListAndWatch = "ShardedListAndWatch"

// AdmissionManifests is the feature for webhooks and policies in files. It reserves their names.
const AdmissionManifests = "ManifestBasedAdmissionControlConfig"

// ReviewsWithoutWebhooks is the feature that keeps reviews of authentication and authorization from admission webhooks.
const ReviewsWithoutWebhooks = "ExcludeAdmissionWebhookVirtualResources"

// feature is a line of features.txt.
type feature struct {
	name string
	// since is the first release in which the feature is on by default, nil for one that the server lacks.
	since    *version.Version
	resource string
	paths    [][]string // of fields, with "a|b" and "*"
	// uses is the number of leading paths with fields that show that an object uses the feature.
	uses int
	// atCreation drops the fields only at the creation of an object, atUpdate only in updates.
	atCreation, atUpdate bool
}

// features are the lines of features.txt.
var features = sync.OnceValue(func() (all []feature) {
	for line := range strings.Lines(featuresText) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if len(words) < 3 {
			panic(fmt.Sprintf("features.txt: %q", line)) // a test reads the file
		}
		f := feature{name: words[0]}
		if words[1] != "lacking" {
			f.since = version.MustParse(words[1])
		}
		f.resource, f.atCreation = strings.CutSuffix(words[2], "+")
		f.resource, f.atUpdate = strings.CutSuffix(f.resource, "~")
		for _, path := range words[3:] {
			path, other := strings.CutPrefix(path, "~")
			if f.paths = append(f.paths, strings.Split(path, ".")); !other {
				f.uses = len(f.paths)
			}
		}
		all = append(all, f)
	}
	return all
})

// Features returns the names of the features of Kubernetes' that can be switched off, sorted.
func Features() (names []string) {
	for _, f := range features() {
		if f.since != nil {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Has reports whether a feature is on: by given, or else by the default of the release.
func (e Emulation) Has(name string, given map[string]bool) bool {
	if on, ok := given[name]; ok {
		return on
	}
	return !slices.ContainsFunc(features(), func(f feature) bool {
		return f.name == name && (f.since == nil || f.since.GreaterThan(e.current()))
	})
}

// LacksPlugin reports whether an admission plugin belongs to a disabled feature.
func (e Emulation) LacksPlugin(name string, given map[string]bool) bool {
	switch name {
	case "PodTopologyLabels":
		return !e.Has("PodTopologyLabelsAdmission", given)
	case "PodGroupProtection":
		return !e.Has(genericWorkload, given)
	}
	return false
}

// FeatureGates returns a receiver for each feature gate, which stores its value in given.
func FeatureGates(given *map[string]bool) map[string]any {
	gates := map[string]any{}
	for _, name := range Features() {
		gates[name] = func(on bool) {
			if *given == nil {
				*given = map[string]bool{}
			}
			(*given)[name] = on
		}
	}
	return gates
}

// CheckFeatures returns an error for the first unknown feature.
func CheckFeatures(given map[string]bool) error {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(Features(), name) {
			return fmt.Errorf("%q is not a feature of a built-in kind: use %s", name, strings.Join(Features(), ", "))
		}
	}
	return nil
}

// DropDisabled makes writes of the kinds drop the fields of disabled features. It also lifts the validation rule that
// an enabled off-by-default feature lifts.
func (e Emulation) DropDisabled(kinds []*catalog.Resource, given map[string]bool) {
	off := map[string][]feature{}
	for _, f := range features() {
		if e.Has(f.name, given) {
			continue
		}
		if f.resource != "podspec" {
			off[f.resource] = append(off[f.resource], f)
			continue
		}
		for resource, at := range podSpecs {
			off[resource] = append(off[resource], f.below(at))
		}
	}
	for _, r := range kinds {
		if r.Group == "" && r.Plural == "services" && !e.Has(relaxedServiceNames, given) {
			namedStrictly(r.Strategy)
		}
		name := strings.TrimSuffix(r.Plural+"."+r.Group, ".")
		if name == "jobs.batch" {
			e.earlierJobs(r.Strategy, given)
		}
		if name == "csidrivers.storage.k8s.io" && !e.Has("VolumeLimitScaling", given) {
			withoutDefault(r.Strategy, "preventPodSchedulingIfMissing")
		}
		if name == "horizontalpodautoscalers.autoscaling" && !e.Has("HPAGeneration", given) {
			r.NoGeneration = true
		}
		if name == "pods" && !e.Has(core.PodLevelDefaulting, given) {
			core.DefaultPodLevelEarly(r.Strategy)
		}
		if name == "podgroups.scheduling.k8s.io" && e.Has(groupPreemption, given) {
			defaultPreemption(r.Strategy)
		}
		e.liftRules(name, r.Strategy, given)
		for _, s := range strategies(r) {
			for _, feature := range ruleFeatures[name] {
				if !e.Has(feature, given) {
					without(s, feature)
				}
			}
			if r.Group == "admissionregistration.k8s.io" && e.Has(AdmissionManifests, given) {
				admission.ReserveNames(s)
			}
			if webhooks[r.Plural] && e.Has(ReviewsWithoutWebhooks, given) {
				admission.WarnReviews(s)
			}
			if !e.Has(rule.StrictAddresses, given) {
				without(s, rule.StrictAddresses)
			}
			if lines := off[name]; len(lines) > 0 {
				dropFrom(s, lines)
			}
		}
	}
}

// strategies returns the strategies of a resource and of its versions that have their own.
func strategies(r *catalog.Resource) (all []*catalog.Strategy) {
	if r.Strategy != nil {
		all = append(all, r.Strategy)
	}
	for _, v := range r.Versions {
		if v.Strategy != nil && !slices.Contains(all, v.Strategy) {
			all = append(all, v.Strategy)
		}
	}
	return all
}

// ruleFeatures are the features that change the rules of a kind.
var ruleFeatures = map[string][]string{
	"horizontalpodautoscalers.autoscaling": {"HPAScaleToZero"},
	"resourceslices.resource.k8s.io":       {"DRAFractionalCapacityRange"},
}

// webhooks are the kinds that configure admission webhooks.
var webhooks = map[string]bool{"mutatingwebhookconfigurations": true, "validatingwebhookconfigurations": true}

// podSpecs are where resources have the spec of a pod.
var podSpecs = map[string][]string{
	"pods": {"spec"}, "podtemplates": {"template", "spec"}, "replicationcontrollers": {"spec", "template", "spec"},
	"replicasets.apps": {"spec", "template", "spec"}, "deployments.apps": {"spec", "template", "spec"},
	"statefulsets.apps": {"spec", "template", "spec"}, "daemonsets.apps": {"spec", "template", "spec"},
	"jobs.batch": {"spec", "template", "spec"}, "cronjobs.batch": {"spec", "jobTemplate", "spec", "template", "spec"},
}

// below returns the feature with its paths under another.
func (f feature) below(at []string) feature {
	paths := make([][]string, len(f.paths))
	for i, path := range f.paths {
		paths[i] = slices.Concat(at, path)
	}
	f.paths = paths
	return f
}

// dropFrom makes a strategy first drop the fields of features.
func dropFrom(s *catalog.Strategy, off []feature) {
	prepareCreate, prepareUpdate := s.PrepareCreate, s.PrepareUpdate
	s.PrepareCreate = func(obj object.Object, e catalog.Env) {
		for _, f := range off {
			f.drop(obj, nil)
		}
		if prepareCreate != nil {
			prepareCreate(obj, e)
		}
	}
	s.PrepareUpdate = func(obj, old object.Object, subresource string, e catalog.Env) {
		for _, f := range off {
			f.drop(obj, old)
		}
		if prepareUpdate != nil {
			prepareUpdate(obj, old, subresource, e)
		}
	}
}

// drop removes the fields of a disabled feature; old is nil for a new object.
func (f feature) drop(obj, old object.Object) {
	if f.atUpdate && old == nil {
		return
	}
	if old != nil {
		used := func(in object.Object, name string) bool { return true }
		uses := func(path []string) bool { return visit(old, path, used) }
		if f.atCreation || slices.ContainsFunc(f.paths[:f.uses], uses) {
			return
		}
	}
	for _, path := range f.paths {
		visit(obj, path, func(in object.Object, name string) bool {
			delete(in, name)
			return false
		})
	}
}

// visit calls found for each field with a value at a path below v, with its parent, until found returns true.
func visit(v any, path []string, found func(in object.Object, name string) bool) bool {
	if list, ok := v.([]any); ok {
		return slices.ContainsFunc(list, func(item any) bool { return visit(item, path, found) })
	}
	in, ok := v.(object.Object)
	if !ok {
		return false
	}
	for name := range strings.SplitSeq(path[0], "|") {
		name, other, unequal := strings.Cut(name, "!=")
		switch {
		case name == "*":
			for _, below := range in {
				if visit(below, path[1:], found) {
					return true
				}
			}
		case in[name] == nil || unequal && in[name] == other:
		case len(path) > 1:
			if visit(in[name], path[1:], found) {
				return true
			}
		case found(in, name):
			return true
		}
	}
	return false
}
