package figures

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"k8s.io/apimachinery/pkg/version"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// shown returns the output of g as text.
func shown(t *testing.T, g *Gatherer) string {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// requests returns a registry with some of kube-apiserver's metrics.
func requests() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	total := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "apiserver_request_total", Help: "Requests."},
		[]string{"code", "verb"})
	total.WithLabelValues("200", "GET").Add(3)
	total.WithLabelValues("201", "POST").Add(1)
	total.WithLabelValues("404", "GET").Add(5)
	inflight := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "apiserver_current_inflight_requests"},
		[]string{"request_kind"})
	inflight.WithLabelValues("readOnly").Set(2)
	inflight.WithLabelValues("mutating").Set(1)
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "apiserver_request_sli_duration_seconds", Help: "Seconds.", Buckets: []float64{1, 2},
	}, []string{"verb"})
	for verb, took := range map[string]float64{"GET": 0.5, "LIST": 1.5, "PUT": 9} {
		seconds.WithLabelValues(verb).Observe(took)
	}
	objects := prometheus.NewGauge(prometheus.GaugeOpts{Name: "apiserver_storage_objects", Help: "Objects."})
	own := prometheus.NewGauge(prometheus.GaugeOpts{Name: "bowsprit_things", Help: "Things."})
	registry.MustRegister(total, inflight, seconds, objects, own)
	return registry
}

func TestGather(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name         string
		options      Options
		want, absent []string // lines
	}{
		{
			name: "levels",
			want: []string{
				"# HELP apiserver_request_total [STABLE] Requests.",
				"# HELP apiserver_storage_objects [STABLE] (Deprecated since 1.34.0) Objects.",
				"# HELP bowsprit_things Things.",
				`apiserver_request_total{code="200",verb="GET"} 3`,
				`registered_metrics_total{deprecated_version="",stability_level="STABLE"} 2`,
				`registered_metrics_total{deprecated_version="1.34.0",stability_level="STABLE"} 1`,
				"hidden_metrics_total 1", "disabled_metrics_total 0",
				"cardinality_enforcement_unexpected_categorizations_total 0",
			},
			absent: []string{"apiserver_request_slo_duration_seconds"},
		},
		{
			name: "hidden ones", options: Options{ShowHidden: true},
			want: []string{
				"# HELP apiserver_request_slo_duration_seconds [ALPHA] (Deprecated since 1.27.0) Seconds.",
				`apiserver_request_slo_duration_seconds_count{verb="GET"} 1`, "hidden_metrics_total 0",
			},
		},
		{
			name: "disabled ones, which are not shown though hidden ones are",
			options: Options{
				Disabled: []string{"apiserver_request_total", "apiserver_request_total", "nothing"}, ShowHidden: true,
			},
			want: []string{"disabled_metrics_total 2"}, absent: []string{"apiserver_request_total"},
		},
		{
			name: "allowed labels",
			options: Options{ShowHidden: true, Allow: map[string][]string{
				"apiserver_request_total,code":                     {"201", "500"},
				"apiserver_current_inflight_requests,request_kind": {"mutating"},
				"apiserver_request_sli_duration_seconds,verb":      {"PUT"},
				"apiserver_request_total,nothing":                  {"x"},
			}},
			want: []string{
				`apiserver_request_total{code="unexpected",verb="GET"} 8`, `apiserver_request_total{code="201",verb="POST"} 1`,
				`apiserver_current_inflight_requests{request_kind="unexpected"} 2`,
				`apiserver_request_sli_duration_seconds_bucket{verb="unexpected",le="1"} 1`,
				`apiserver_request_sli_duration_seconds_bucket{verb="unexpected",le="2"} 2`,
				`apiserver_request_sli_duration_seconds_sum{verb="unexpected"} 2`,
				`apiserver_request_sli_duration_seconds_count{verb="unexpected"} 2`,
				`apiserver_request_sli_duration_seconds_count{verb="PUT"} 1`,
				`apiserver_request_slo_duration_seconds_count{verb="LIST"} 1`,
				"cardinality_enforcement_unexpected_categorizations_total 11",
			},
			absent: []string{`code="404"`, `readOnly`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := NewGatherer(requests(), test.options)
			shown(t, g)
			text := shown(t, g) // a second time: nothing is counted twice
			for _, line := range test.want {
				if !strings.Contains(text, line+"\n") {
					t.Errorf("%s is missing in\n%s", line, text)
				}
			}
			for _, name := range test.absent {
				if strings.Contains(text, name) {
					t.Errorf("%s is in\n%s", name, text)
				}
			}
		})
	}
}

func TestHidden(t *testing.T) {
	t.Parallel()
	for l, want := range map[level]bool{
		{"ALPHA", ""}: false, {"ALPHA", "1.36.0"}: true, {"ALPHA", "1.37.0"}: false, {"BETA", "1.36.0"}: false,
		{"BETA", "1.35.0"}: true, {"STABLE", "1.34.0"}: false, {"STABLE", "1.33.0"}: true, {"INTERNAL", "1.36.0"}: true,
	} {
		if got := l.hidden(); got != want {
			t.Errorf("%v: %v", l, got)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Requests.":               "[ALPHA] Requests.",
		"EXPERIMENTAL: Requests.": "EXPERIMENTAL: [ALPHA] Requests.",

		"[ALPHA] Reloads.":               "[ALPHA] Reloads.",
		"EXPERIMENTAL: [ALPHA] Reloads.": "EXPERIMENTAL: [ALPHA] Reloads.",
	} {
		if got := (level{stability: "ALPHA"}).help(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestStoreRequests finds the kind of a key, even if one prefix is the beginning of another.
func TestStoreRequests(t *testing.T) {
	t.Parallel()
	s := NewStoreRequests()
	s.Observe("get", "things/a", time.Second, nil) // no kinds are known yet
	resource := func(group, plural, prefix string) *catalog.Resource {
		v := &catalog.Version{Name: "v1", Served: true}
		return &catalog.Resource{
			Group: group, Plural: plural, Kind: plural, Prefix: prefix, Versions: []*catalog.Version{v}, Storage: v,
			Served: true,
		}
	}
	s.Follow(catalog.New(resource("", "things", "things"), resource("g.io", "cs", "g.io/cs"),
		resource("", "services", "services/specs")))
	s.Observe("create", "things/default/a", time.Second, nil)
	s.Observe("create", "things/default/b", time.Second, errors.New("refused"))
	s.Observe("list", "g.io/cs", time.Second, nil)
	s.Observe("delete", "g.io/cs/n/a", time.Second, nil)
	s.Observe("update", "services/specs/n/a", time.Second, nil)
	s.Observe("update", "services/endpoints/n/a", time.Second, nil)
	s.Observe("list", "", time.Second, nil)
	registry := prometheus.NewRegistry()
	registry.MustRegister(s)
	text := shown(t, NewGatherer(registry, Options{}))
	for _, line := range []string{
		"# HELP etcd_requests_total [ALPHA] Etcd request counts for each operation and object type.",
		`etcd_requests_total{group="",operation="create",resource="things"} 2`,
		`etcd_request_errors_total{group="",operation="create",resource="things"} 1`,
		`etcd_request_duration_seconds_sum{group="",operation="create",resource="things"} 2`,
		`etcd_requests_total{group="g.io",operation="list",resource="cs"} 1`,
		`etcd_requests_total{group="g.io",operation="delete",resource="cs"} 1`,
		`etcd_requests_total{group="",operation="update",resource="services"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is missing in\n%s", line, text)
		}
	}
	if n := strings.Count(text, "\netcd_requests_total{"); n != 4 {
		t.Errorf("%d series in\n%s", n, text)
	}
}

func TestBuild(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	registry.MustRegister(Build(version.Info{
		Major: "1", Minor: "36", EmulationMajor: "1", EmulationMinor: "35", MinCompatibilityMajor: "1",
		MinCompatibilityMinor: "34",
	}, []Gate{{Name: "On", Stage: "BETA", Enabled: true}, {Name: "Off", Stage: "ALPHA"}})...)
	text := shown(t, NewGatherer(registry, Options{}))
	for _, line := range []string{
		`version_info{binary="1.36",component="kube",emulation="1.35",min_compat="1.34"} 1`,
		`kubernetes_feature_enabled{name="On",stage="BETA"} 1`, `kubernetes_feature_enabled{name="Off",stage="ALPHA"} 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is missing in\n%s", line, text)
		}
	}
}
