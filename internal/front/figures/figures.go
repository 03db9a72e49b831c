// Package figures collects the server-wide metrics on /metrics: the number of stored objects, etcd requests, the build,
// and the rules of Kubernetes' component-base/metrics about visible metrics and labels.
//
// It stands beside the steps and handlers of package front. StoreRequests counts on the path of a request; everything
// else is looked up at scrape time from the view, which holds the sizes of collections.
package figures

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/version"
)

// Gate is one of Kubernetes' feature gates.
type Gate struct {
	Name    string
	Stage   string // ALPHA, BETA, DEPRECATED, or "" if generally available
	Enabled bool
}

// Build returns the metrics that identify this server.
func Build(v version.Info, gates []Gate) []prometheus.Collector {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kubernetes_build_info",
		Help: "A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it is running.",
		ConstLabels: prometheus.Labels{
			"major": v.Major, "minor": v.Minor, "git_version": v.GitVersion, "git_commit": v.GitCommit,
			"git_tree_state": v.GitTreeState, "build_date": v.BuildDate, "go_version": runtime.Version(),
			"compiler": v.Compiler, "platform": v.Platform,
		},
	})
	build.Set(1)
	versions := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "version_info",
		Help: "Provides the compatibility version info of the component. The component label is the name of the component, usually kube, but is relevant for aggregated-apiservers.",
		ConstLabels: prometheus.Labels{
			"component": "kube", "binary": v.Major + "." + v.Minor,
			"emulation":  v.EmulationMajor + "." + v.EmulationMinor,
			"min_compat": v.MinCompatibilityMajor + "." + v.MinCompatibilityMinor,
		},
	})
	versions.Set(1)
	features := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kubernetes_feature_enabled",
		Help: "This metric records the data about the stage and enablement of a k8s feature.",
	}, []string{"name", "stage"})
	for _, g := range gates {
		enabled := 0.0
		if g.Enabled {
			enabled = 1
		}
		features.WithLabelValues(g.Name, g.Stage).Set(enabled)
	}
	return []prometheus.Collector{build, versions, features}
}
