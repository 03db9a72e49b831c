package figures

import (
	_ "embed"
	"strconv"
	"strings"
)

// levelsText lists the metrics of kube-apiserver, one a line: the name, the stability, and the release that deprecated
// it, if any. Source: test/instrumentation/documentation of Kubernetes 1.36.
//
//go:embed levels.txt
var levelsText string

// minor is the minor version of Kubernetes in levelsText.
const minor = 36

// level is the stability level of a metric.
type level struct {
	stability  string // STABLE, BETA, ALPHA or INTERNAL; "" for a metric that Kubernetes lacks
	deprecated string // "1.27.0"; "" if not deprecated
}

func readLevels() map[string]level {
	all := make(map[string]level, strings.Count(levelsText, "\n"))
	for line := range strings.Lines(levelsText) {
		words := strings.Fields(line)
		l := level{stability: words[1]}
		if len(words) > 2 {
			l.deprecated = words[2]
		}
		all[words[0]] = l
	}
	return all
}

// hidden reports whether the metric is hidden by default: a stable one three minor releases after its deprecation, a
// beta one after one release, others at once (k8s.io/component-base/metrics).
func (l level) hidden() bool {
	_, release, ok := strings.Cut(l.deprecated, ".")
	if !ok {
		return false
	}
	release, _, _ = strings.Cut(release, ".")
	since, err := strconv.Atoi(release)
	if err != nil {
		return false
	}
	switch l.stability {
	case "STABLE":
		since += 3
	case "BETA":
		since++
	}
	return since <= minor
}

// help returns the help of a metric with its stability level, in Kubernetes' form. The metrics of Kubernetes' libraries
// already have it.
func (l level) help(text string) string {
	if strings.HasPrefix(strings.TrimPrefix(text, "EXPERIMENTAL: "), "["+l.stability+"] ") {
		return text
	}
	if l.deprecated != "" {
		text = "(Deprecated since " + l.deprecated + ") " + text
	}
	if l.stability == "" {
		return text
	}
	// The mark of Kubernetes' timing histograms comes first.
	text, experimental := strings.CutPrefix(text, "EXPERIMENTAL: ")
	text = "[" + l.stability + "] " + text
	if experimental {
		text = "EXPERIMENTAL: " + text
	}
	return text
}
