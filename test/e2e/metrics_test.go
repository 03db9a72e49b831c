package e2e

import (
	"bufio"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// metric is the description of one metric on a page: help, type, and the names of its labels and bounds of its buckets.
type metric struct {
	help, kind     string
	labels, bounds map[string]bool
}

// TestMetricsAreKubes sends the requests of testdata/audit/requests.txt to bowsprit and to a real kube-apiserver
// (reference), and compares the metrics of both: help, type, labels and buckets. testdata/metrics/missing.txt lists the
// beginnings of the names that bowsprit lacks.
func TestMetricsAreKubes(t *testing.T) {
	if reference == "" {
		t.Skip("E2E_KUBE_APISERVER is not set")
	}
	kube := startReference(t, startCluster(t, 1, nil), withoutAccounts)
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(tokens, []byte(referenceToken+`,kubernetes-admin,,"system:masters"`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ours := startServer(t, "--ephemeral", withoutAccounts, "--token-auth-file="+tokens, "--authorization-mode=RBAC")
	for _, r := range readAuditRequests(t) {
		r.send(t, kube)
		r.send(t, ours)
	}
	theirs, mine := readMetrics(t, kube), readMetrics(t, ours)
	missing := readLines(t, "testdata/metrics/missing.txt")
	compared := 0
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		a, b := theirs[name], mine[name]
		known := slices.ContainsFunc(missing, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		switch {
		case b == nil && !known:
			t.Errorf("%s is missing: %s", name, a.help)
		case b != nil && known:
			t.Errorf("%s is there: take it out of missing.txt", name)
		case b == nil:
		case a.kind != b.kind || a.help != b.help || !maps.Equal(a.labels, b.labels) || !maps.Equal(a.bounds, b.bounds):
			if !slices.Contains(otherwise, name) {
				t.Errorf("%s differs:\nkube-apiserver %+v\nbowsprit       %+v", name, *a, *b)
			}
			fallthrough
		default:
			compared++
		}
	}
	for name := range mine {
		if theirs[name] == nil && !strings.HasPrefix(name, "bowsprit_") {
			t.Logf("kube-apiserver has no %s", name) // it has had no occasion to count it
		}
	}
	t.Logf("%d metrics compared, %d of kube-apiserver's are missing", compared, len(theirs)-compared)
	if compared < 100 {
		t.Errorf("%d metrics compared", compared)
	}
}

// otherwise lists metrics with a different help. The first counts another moment. The reference, if built without a
// version, does not detect deprecated metrics.
var otherwise = []string{"apiserver_current_inflight_requests", "apiserver_storage_objects"}

func readLines(t *testing.T, path string) (out []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return out
}

func readMetrics(t *testing.T, p *process) map[string]*metric {
	t.Helper()
	config := p.config(t)
	client, err := rest.HTTPClientFor(&rest.Config{
		Host: config.Host, TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData, Insecure: config.Insecure},
	})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(bounded(t, startLimit), http.MethodGet, config.Host+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+referenceToken)
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("/metrics: %d", res.StatusCode)
	}
	return parseMetrics(t, res.Body)
}

// parseMetrics reads the text format, in which the series of a metric follow its help.
func parseMetrics(t *testing.T, page io.Reader) map[string]*metric {
	t.Helper()
	out := map[string]*metric{}
	var now *metric
	lines := bufio.NewScanner(page)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		line := lines.Text()
		if help, ok := strings.CutPrefix(line, "# HELP "); ok {
			name, text, _ := strings.Cut(help, " ")
			now = &metric{help: text, labels: map[string]bool{}, bounds: map[string]bool{}}
			out[name] = now
			continue
		}
		if kind, ok := strings.CutPrefix(line, "# TYPE "); ok {
			_, now.kind, _ = strings.Cut(kind, " ")
			continue
		}
		_, labels, ok := strings.Cut(line, "{")
		for ok && labels != "" && labels[0] != '}' {
			name, rest, _ := strings.Cut(labels, `="`)
			value, after := quoted(rest)
			switch name = strings.TrimPrefix(name, ","); name {
			case "le":
				now.bounds[value] = true
			case "quantile":
			default:
				now.labels[name] = true
			}
			labels = after
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// quoted returns the text up to its closing quote, and the rest.
func quoted(text string) (value, rest string) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}
