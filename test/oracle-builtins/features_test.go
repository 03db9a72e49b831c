package oraclebuiltins

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/registry/rest"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

// TestDisabledFeatures writes random objects with all features, with each feature off, and as releases before 1.36, and
// checks that we drop the same fields as Kubernetes' strategies. It is not parallel, because Kubernetes has one set of
// gates for all. CHECKS is the number of objects of each kind.
func TestDisabledFeatures(t *testing.T) {
	with := prepareRandom(t, kinds.Emulation{}, nil)
	for _, name := range kinds.Features() {
		gates := utilfeature.DefaultMutableFeatureGate.DeepCopy()
		if gates.Set(name+"=false") != nil {
			continue // it can be off in an older release alone
		}
		t.Run(name, func(t *testing.T) {
			featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, featuregate.Feature(name),
				false)
			compareDropped(t, with, prepareRandom(t, kinds.Emulation{}, map[string]bool{name: false}))
		})
	}
	for _, release := range []string{"1.34", "1.35", "1.36"} {
		t.Run(release, func(t *testing.T) {
			featuregatetesting.SetFeatureGateEmulationVersionDuringTest(t, utilfeature.DefaultFeatureGate,
				version.MustParse(release))
			e, err := kinds.ParseEmulation([]string{release}, nil)
			if err != nil {
				t.Fatal(err)
			}
			compareDropped(t, with, prepareRandom(t, e, nil))
		})
	}
}

// prepared is a random object after a write, by us and by Kubernetes.
type prepared struct{ ours, theirs map[string]any }

// compareDropped checks that the same fields differ from the result with all features.
func compareDropped(t *testing.T, with, without map[string]prepared) {
	t.Helper()
	count := 0
	for _, name := range slices.Sorted(maps.Keys(with)) {
		a, b := with[name], without[name]
		got, want := lost(a.ours, b.ours), lost(a.theirs, b.theirs)
		if strings.Contains(name, "/status") { // fields of an old object that no client could write
			inSpec := func(path string) bool { return strings.HasPrefix(path, ".spec.") }
			got, want = slices.DeleteFunc(got, inSpec), slices.DeleteFunc(want, inSpec)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s loses %q and not %q", name, got, want)
			return
		}
		count += len(want)
	}
	t.Logf("%d fields", count)
}

// lost returns the paths of changed, without generations, which package rest sets (HPAGeneration), current times,
// statuses of claims that a pod's spec lacks, and volumes and their mounts, which we do not drop (ImageVolume).
func lost(a, b map[string]any) []string {
	return slices.DeleteFunc(changed("", a, b), func(path string) bool {
		return path == ".metadata.generation" || path == ".status.resourceClaimStatuses" ||
			strings.HasSuffix(path, "TransitionTime") ||
			strings.Contains(path, ".volumes") ||
			strings.HasSuffix(path, ".volumeMounts")
	})
}

// changed returns the paths of differences between a and b, sorted. Empty maps and lists count as absent.
func changed(path string, a, b any) (paths []string) {
	am, _ := a.(map[string]any)
	bm, _ := b.(map[string]any)
	al, _ := a.([]any)
	bl, _ := b.([]any)
	switch {
	case len(am) > 0 && len(bm) > 0:
		for key := range am {
			paths = append(paths, changed(path+"."+key, am[key], bm[key])...)
		}
		for key := range bm {
			if _, ok := am[key]; !ok {
				paths = append(paths, changed(path+"."+key, nil, bm[key])...)
			}
		}
	case len(al) > 0 && len(al) == len(bl):
		for i := range al {
			paths = append(paths, changed(fmt.Sprintf("%s[%d]", path, i), al[i], bl[i])...)
		}
	case len(am)+len(al)+len(bm)+len(bl) > 0 || !empty(a) && !empty(b) && a != b || empty(a) != empty(b):
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

func empty(v any) bool {
	switch v.(type) {
	case nil, map[string]any, []any: // which are empty here
		return true
	}
	return false
}

// featureSeeds returns the number of random objects of each kind: CHECKS, or 3.
func featureSeeds() int64 {
	if n, err := strconv.ParseInt(os.Getenv("CHECKS"), 10, 64); err == nil {
		return n
	}
	return 3
}

// prepareRandom writes random objects of all kinds, as new ones and as updates of others.
func prepareRandom(t *testing.T, e kinds.Emulation, given map[string]bool) map[string]prepared {
	t.Helper()
	resources := kinds.Resources()
	e.DropDisabled(resources, given)
	out := map[string]prepared{}
	for _, r := range resources {
		// Older releases did not reset the status of a ServiceCIDR.
		if r.Secondary || strategies[r.Kind] == nil || r.Kind == "ServiceCIDR" {
			continue
		}
		c := &comparison{t: t, r: r, kind: r.Kind}
		for seed := range featureSeeds() {
			c.prepare(out, fmt.Sprintf("%s %d", r.Kind, seed), seed, "", strategies[r.Kind])
			for part, s := range parts {
				if sub, ok := strings.CutPrefix(part, r.Kind+"/"); ok && sub == "status" {
					c.prepare(out, fmt.Sprintf("%s %d", part, seed), seed, sub, s)
				}
			}
		}
	}
	return out
}

// prepare adds the results for random objects to out. Kubernetes' strategies panic for some objects that no client can
// write.
func (c *comparison) prepare(out map[string]prepared, name string, seed int64, sub string, s rest.RESTUpdateStrategy) {
	for _, from := range []int64{-1, seed + 100, seed + 200} {
		if from < 0 && sub != "" {
			continue
		}
		ours, theirs, ok := c.random(seed)
		var was map[string]any
		var before runtime.Object
		if from >= 0 && ok {
			was, before, ok = c.random(from)
		}
		if !ok {
			continue
		}
		func() {
			defer func() { _ = recover() }()
			if from < 0 {
				strategies[c.kind].PrepareForCreate(c.ctx(sub), theirs)
				c.r.Strategy.PrepareCreate(ours, catalog.Env{})
			} else {
				s.PrepareForUpdate(c.ctx(sub), theirs, before)
				c.r.Strategy.PrepareUpdate(ours, was, sub, catalog.Env{})
			}
			shown, err := legacyscheme.Scheme.ConvertToVersion(theirs,
				schema.GroupVersion{Group: c.r.Group, Version: c.r.Storage.Name})
			if err != nil {
				return
			}
			out[fmt.Sprintf("%s from %d", name, from)] = prepared{
				tree(c.t, marshal(c.t, ours)), tree(c.t, marshal(c.t, shown)),
			}
		}()
	}
}

// random returns a random object in both forms, with defaults; ok is false if it cannot be read.
func (c *comparison) random(seed int64) (ours map[string]any, theirs runtime.Object, ok bool) {
	c.object = "random"
	return c.read(tree(c.t, randomObject(c.t, c.r, c.r.Storage, seed)))
}
