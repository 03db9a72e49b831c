package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestObservabilityConfig(t *testing.T) {
	t.Parallel()
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "file.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"
	for _, test := range []struct {
		config Observability
		want   string // in the error; "" means no error
	}{
		{Observability{ShowHiddenMetricsForVersion: "1.36"}, ""},
		{Observability{ShowHiddenMetricsForVersion: "1.35"}, "only the previous minor version is allowed"},
		{Observability{DisabledMetrics: []string{"a_b"}}, ""},
		{Observability{DisabledMetrics: []string{"a-b"}}, `"a-b" is not the name of a metric`},
		{Observability{AllowMetricLabels: map[string]string{"a,b": "c"}}, ""},
		{Observability{AllowMetricLabels: map[string]string{"a": "c"}}, "must have the form metricName,labelName"},
		{Observability{AllowMetricLabelsManifest: file("a,b: c,d\n")}, ""},
		{Observability{AllowMetricLabelsManifest: file("- a\n")}, "--allow-metric-labels-manifest"},
		{Observability{AllowMetricLabelsManifest: file("{a: b}")}, "must have the form metricName,labelName"},
		{Observability{AllowMetricLabelsManifest: "absent"}, "no such file"},
		{
			Observability{
				AllowMetricLabels:         map[string]string{"a,b": "c"},
				AllowMetricLabelsManifest: file("a,b: c,d\n"),
			},
			"cannot specify both",
		},
		{Observability{TracingConfigFile: file(head + "endpoint: localhost:4317\nsamplingRatePerMillion: 100")}, ""},
		{Observability{TracingConfigFile: file(strings.ReplaceAll(head, "v1", "v1beta1"))}, ""},
		{Observability{TracingConfigFile: file(strings.ReplaceAll(head, "v1", "v2"))}, `registered for version`},
		{Observability{TracingConfigFile: file("{}")}, `registered for version`},
		{Observability{TracingConfigFile: file(head + "endpoints: a")}, `unknown field "endpoints"`},
		{Observability{TracingConfigFile: file(head + "endpoint: http://a")}, "unsupported scheme: http"},
		{Observability{TracingConfigFile: file(head + "samplingRatePerMillion: 1000001")},
			"sampling rate per million must be less than or equal to one million"},
		{Observability{TracingConfigFile: file(head + "samplingRatePerMillion: -1")}, "sampling rate must be positive"},
		{Observability{TracingConfigFile: "absent"}, "no such file"},
	} {
		err := Config{Ephemeral: true, Observability: test.config}.Validate()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.config, err, test.want)
		}
	}
}
