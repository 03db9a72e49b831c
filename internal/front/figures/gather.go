package figures

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

// Options selects the visible metrics. The zero value is Kubernetes' selection.
type Options struct {
	// Allow lists the allowed values of a label, by "metric,label"; others become "unexpected", and their series are
	// merged.
	Allow map[string][]string
	// Disabled lists metrics to hide.
	Disabled []string
	// ShowHidden shows deprecated metrics that are hidden by default.
	ShowHidden bool
}

// Gatherer is a prometheus.Gatherer that filters the metrics of another one according to Options, and adds the
// stability level that Kubernetes assigns to each. It works at scrape time, so it costs requests nothing. It is safe
// for concurrent use.
type Gatherer struct {
	from     prometheus.Gatherer
	levels   func() map[string]level
	allow    map[string]map[string][]string // metric, label: values
	disabled []string
	hidden   bool // show hidden metrics

	mu struct {
		sync.Mutex
		seen       map[string]bool // names of metrics that have existed
		hid        map[string]bool // hidden ones among them
		unexpected uint64          // number of replaced values
	}
}

var _ prometheus.Gatherer = (*Gatherer)(nil)

// NewGatherer shows the metrics of from.
func NewGatherer(from prometheus.Gatherer, o Options) *Gatherer {
	g := &Gatherer{
		from: from, levels: sync.OnceValue(readLevels), allow: map[string]map[string][]string{},
		hidden: o.ShowHidden, disabled: slices.Compact(slices.Sorted(slices.Values(o.Disabled))),
	}
	for key, values := range o.Allow {
		metric, label, _ := strings.Cut(key, ",")
		if g.allow[metric] == nil {
			g.allow[metric] = map[string][]string{}
		}
		g.allow[metric][label] = values
	}
	g.mu.seen, g.mu.hid = map[string]bool{}, map[string]bool{}
	return g
}

// Gather implements prometheus.Gatherer.
func (g *Gatherer) Gather() ([]*dto.MetricFamily, error) {
	families, err := g.from.Gather()
	families = append(families, g.slo(families)...)
	levels := g.levels()
	unexpected := uint64(0)
	var seen, hid []string
	shown := families[:0]
	for _, f := range families {
		l := levels[f.GetName()]
		seen = append(seen, f.GetName())
		switch {
		case slices.Contains(g.disabled, f.GetName()):
			continue
		case l.hidden() && !g.hidden:
			hid = append(hid, f.GetName())
			continue
		}
		if allow := g.allow[f.GetName()]; allow != nil {
			unexpected += limit(f, allow)
		}
		f.Help = new(l.help(f.GetHelp()))
		shown = append(shown, f)
	}
	shown = append(shown, g.own(seen, hid, unexpected)...)
	slices.SortFunc(shown, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return shown, err
}

// slo returns apiserver_request_sli_duration_seconds under its former name, now hidden: without series, unless hidden
// metrics are shown.
func (g *Gatherer) slo(families []*dto.MetricFamily) []*dto.MetricFamily {
	i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool {
		return f.GetName() == "apiserver_request_sli_duration_seconds"
	})
	if i < 0 {
		return nil
	}
	before := &dto.MetricFamily{}
	if g.hidden {
		before = proto.CloneOf(families[i])
	}
	before.Name = new("apiserver_request_slo_duration_seconds")
	return []*dto.MetricFamily{before}
}

// own returns Kubernetes' metrics about the metrics themselves.
func (g *Gatherer) own(seen, hid []string, unexpected uint64) []*dto.MetricFamily {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range seen {
		g.mu.seen[name] = true
	}
	for _, name := range hid {
		g.mu.hid[name] = true
	}
	g.mu.unexpected = max(g.mu.unexpected, unexpected)

	levels := g.levels()
	registered := map[level]int{}
	for name := range g.mu.seen {
		if l := levels[name]; l.stability != "" && !g.mu.hid[name] {
			registered[l]++
		}
	}
	counts := make([]*dto.Metric, 0, len(registered))
	for l, n := range registered {
		counts = append(counts, counter(uint64(n), "deprecated_version", l.deprecated, "stability_level", l.stability))
	}
	slices.SortFunc(counts, func(a, b *dto.Metric) int { return cmp.Compare(labelKey(a), labelKey(b)) })
	families := []*dto.MetricFamily{
		{
			Name: new("registered_metrics_total"), Metric: counts,
			Help: new("The count of registered metrics broken by stability level and deprecation version."),
		},
		{
			Name: new("disabled_metrics_total"), Help: new("The count of disabled metrics."),
			Metric: []*dto.Metric{counter(uint64(len(g.disabled)))},
		},
		{
			Name: new("hidden_metrics_total"), Help: new("The count of hidden metrics."),
			Metric: []*dto.Metric{counter(uint64(len(g.mu.hid)))},
		},
		{
			Name:   new("cardinality_enforcement_unexpected_categorizations_total"),
			Help:   new("The count of unexpected categorizations during cardinality enforcement."),
			Metric: []*dto.Metric{counter(g.mu.unexpected)},
		},
	}
	for _, f := range families {
		f.Type, f.Help = dto.MetricType_COUNTER.Enum(), new(levels[f.GetName()].help(f.GetHelp()))
	}
	return families
}

// counter returns a counter with labels. labels alternates names and values, sorted by name.
func counter(value uint64, labels ...string) *dto.Metric {
	m := &dto.Metric{Counter: &dto.Counter{Value: new(float64(value))}}
	for i := 0; i < len(labels); i += 2 {
		m.Label = append(m.Label, &dto.LabelPair{Name: &labels[i], Value: &labels[i+1]})
	}
	return m
}
