package oraclebuiltins

import (
	"slices"
	"sync/atomic"
	"testing"

	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"

	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/bowsprit/bowsprit/internal/feature/plugins"
	"github.com/bowsprit/bowsprit/internal/testing/plugintest"
)

// TestAdmissionPlugins sends the requests of our plugins' testdata to Kubernetes' plugins, which must give the recorded
// results.
func TestAdmissionPlugins(t *testing.T) {
	t.Parallel()
	registry := pluginRegistry()
	if ours := slices.Sorted(slices.Values(plugins.Names())); !slices.Equal(ours, registry.Registered()) {
		t.Fatalf("compared are %q, there are %q", registry.Registered(), ours)
	}
	files := plugintest.Each(t, pluginCases,
		func(t *testing.T, name string, all *plugintest.Cases, c *plugintest.Write) {
			t.Helper()
			if !callsProcess(all) {
				callPlugin(t, registry, name, all, c)
			}
		})
	if files < len(registry.Registered()) {
		t.Errorf("there are %d files for %d plugins", files, len(registry.Registered()))
	}
}

// TestGatedAdmissionPlugins does so for the plugins that read feature gates only from the process's gates. It is not
// parallel: parallel tests wait until the gates are restored.
func TestGatedAdmissionPlugins(t *testing.T) {
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.GenericWorkload: true, features.PodGroupPreemptionPolicy: false,
	})
	registry, calls := pluginRegistry(), atomic.Int64{}
	t.Run("cases", func(t *testing.T) {
		plugintest.Each(t, pluginCases, func(t *testing.T, name string, all *plugintest.Cases, c *plugintest.Write) {
			t.Helper()
			if callsProcess(all) {
				calls.Add(1)
				callPlugin(t, registry, name, all, c)
			}
		})
	})
	if calls.Load() == 0 {
		t.Error("there are no such cases")
	}
}
