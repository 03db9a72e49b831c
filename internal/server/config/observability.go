package config

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/net/tracing"
)

// Observability configures metrics, profiles and traces.
type Observability struct {
	// AllowMetricLabels are the values that labels of metrics may have, separated by commas, by "metric,label"; others
	// are shown as "unexpected".
	AllowMetricLabels map[string]string
	// AllowMetricLabelsManifest is a YAML file with such a mapping, in place of AllowMetricLabels.
	AllowMetricLabelsManifest string
	// DisabledMetrics are names of metrics to hide.
	DisabledMetrics []string
	// ShowHiddenMetricsForVersion is the release of Kubernetes before this one ("1.36"), to show the metrics that this
	// release hides as deprecated; "" shows none of them.
	ShowHiddenMetricsForVersion string
	// TracingConfigFile is a TracingConfiguration of apiserver.config.k8s.io/v1, with the receiver of OpenTelemetry
	// traces and the share of traced requests; "" traces no requests.
	TracingConfigFile string
	// Profiling serves /debug/pprof and, if Verbosity is set, /debug/flags/v; nil is true.
	Profiling *bool
	// Verbosity sets the verbosity of the log, in the numbers of the flag -v, while the server runs. A PUT of
	// /debug/flags/v calls it. Optional.
	Verbosity func(v int)
	// ContentionProfiling has the profiles block and mutex filled, if Profiling is on.
	ContentionProfiling bool
}

func (c *Observability) setDefaults() { c.Profiling = cmp.Or(c.Profiling, new(true)) }

func (c *Observability) settings() []Setting {
	return []Setting{
		{
			Name:  "allow-metric-labels",
			Help:  `allowed values of metric labels, "metric,label=value,value" in quotes for each; others are shown as unexpected`,
			Value: &c.AllowMetricLabels, Form: Quoted,
		},
		{
			Name:  "allow-metric-labels-manifest",
			Help:  `YAML file of such values: a mapping of "metric,label" to "value,value"`,
			Value: &c.AllowMetricLabelsManifest,
		},
		{Name: "disabled-metrics", Help: "names of metrics to hide", Value: &c.DisabledMetrics},
		{
			Name:  "show-hidden-metrics-for-version",
			Help:  "previous release, such as 1.36, to show the deprecated metrics that this release hides",
			Value: &c.ShowHiddenMetricsForVersion,
		},
		{
			Name:  "tracing-config-file",
			Help:  "TracingConfiguration: endpoint and sampling rate of OpenTelemetry traces",
			Value: &c.TracingConfigFile,
		},
		{Name: "profiling", Help: "serve profiles at /debug/pprof (default true)", Value: &c.Profiling},
		{
			Name: "contention-profiling", Help: "collect the block and mutex profiles, with --profiling",
			Value: &c.ContentionProfiling,
		},
	}
}

// Names of metrics and labels (prometheus.io/docs/concepts/data_model).
const (
	metricName = `[a-zA-Z_:][a-zA-Z0-9_:]*`
	labelName  = `[a-zA-Z_][a-zA-Z0-9_]*`
)

var (
	metricPattern = regexp.MustCompile("^" + metricName + "$")
	labelPattern  = regexp.MustCompile("^" + metricName + "," + labelName + "$")
)

// previousRelease is the release whose hidden metrics can be shown.
const previousRelease = "1.36"

func (c *Observability) validate(p *problems) {
	for _, name := range c.DisabledMetrics {
		if !metricPattern.MatchString(name) {
			p.add("--disabled-metrics: %q is not the name of a metric: it must match %q", name, metricPattern)
		}
	}
	if v := c.ShowHiddenMetricsForVersion; v != "" && v != previousRelease {
		p.add("--show-hidden-metrics-for-version: %q must be omitted or have the value '%s'; "+
			"only the previous minor version is allowed", v, previousRelease)
	}
	if len(c.AllowMetricLabels) > 0 && c.AllowMetricLabelsManifest != "" {
		p.add("cannot specify both --allow-metric-labels and --allow-metric-labels-manifest")
	}
	if _, err := MetricLabels(c); err != nil {
		*p = append(*p, err)
	}
	if c.TracingConfigFile != "" {
		if _, err := tracing.Read(c.TracingConfigFile); err != nil {
			p.add("--tracing-config-file: %w: correct the file, or the flag that names it", err)
		}
	}
}

// MetricLabels returns the values that labels may have, by "metric,label".
func MetricLabels(c *Observability) (map[string][]string, error) {
	flag, given := "--allow-metric-labels", c.AllowMetricLabels
	if file := c.AllowMetricLabelsManifest; file != "" {
		flag = "--allow-metric-labels-manifest"
		data, err := os.ReadFile(file)
		if err == nil {
			err = yaml.Unmarshal(data, &given)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w: name a YAML file with a mapping of \"metric,label\" to \"value,value\"", flag,
				err)
		}
	}
	out := make(map[string][]string, len(given))
	for key, values := range given {
		if !labelPattern.MatchString(key) {
			return nil, fmt.Errorf("%s: %q must have the form metricName,labelName: metricName matches %q, labelName "+
				"matches %q", flag, key, metricName, labelName)
		}
		out[key] = strings.Split(values, ",")
	}
	return out, nil
}
