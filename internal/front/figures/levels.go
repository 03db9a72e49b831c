package figures

import (
	_ "embed"
	"strconv"
	"strings"
)

// levelsText has the metrics of kube-apiserver, one a line: name, how stable it is, and the release from which on it is
// deprecated, if it is. Source: test/instrumentation/documentation of Kubernetes 1.36.
//
//go:embed levels.txt
var levelsText string

// minor is that of the Kubernetes 1.x whose metrics these are.
const minor = 36

// level is what Kubernetes promises of a metric.
type level struct {
	stability  string // STABLE, BETA, ALPHA or INTERNAL; "" for a metric that Kubernetes does not have
	deprecated string // "1.27.0"; "" if it is not deprecated
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

// hidden reports whether the metric is no longer shown unless that is asked for: a stable one three minor releases
// after its deprecation, one in beta after one, others at once (k8s.io/component-base/metrics).
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

// help returns the help of a metric with what is promised of it, as Kubernetes writes it. The metrics of Kubernetes'
// libraries have that already.
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
	// What Kubernetes' timing histograms are goes before it.
	text, experimental := strings.CutPrefix(text, "EXPERIMENTAL: ")
	text = "[" + l.stability + "] " + text
	if experimental {
		text = "EXPERIMENTAL: " + text
	}
	return text
}
