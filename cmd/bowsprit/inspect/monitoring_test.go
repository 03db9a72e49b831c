package inspect

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/testserver"
)

// rare lists metrics that appear only after the counted event. The list of levels has their names.
var rare = []string{"apiserver_request_terminations_total", "apiserver_audit_error_total"}

var (
	selectors = regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]|\b(by|without|on) *\([^)]*\)`)
	names     = regexp.MustCompile(`[a-z][a-z0-9_]*[a-z]\b *\(?`)
)

// metricsOf returns the metrics that an expression names: its words except for functions.
func metricsOf(expression string) (metrics []string) {
	for _, word := range names.FindAllString(selectors.ReplaceAllString(expression, ""), -1) {
		if !strings.HasSuffix(word, "(") && strings.Contains(word, "_") {
			metrics = append(metrics, strings.TrimSpace(word))
		}
	}
	return metrics
}

func TestMetricsOf(t *testing.T) {
	t.Parallel()
	got := metricsOf(`histogram_quantile(0.99, sum by (le, some_label) (rate(a_bucket{verb!~"W|C"}[5m]))) > 7e9 / b_total`)
	if !slices.Equal(got, []string{"a_bucket", "b_total"}) {
		t.Error(got)
	}
}

// expressions returns the expressions in the files for Prometheus and Grafana, by their place.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "packaging", "monitoring")
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	for file, parse := range map[string]func([]byte) error{
		"alerts.yaml":    func(b []byte) error { return yaml.UnmarshalStrict(b, &rules) },
		"dashboard.json": func(b []byte) error { return json.Unmarshal(b, &board) },
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err == nil {
			err = parse(text)
		}
		if err != nil {
			t.Fatal(file, err)
		}
	}
	all := map[string]string{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			all["alert "+r.Alert] = r.Expr
			if r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("alert %s says too little", r.Alert)
			}
		}
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			all["panel "+p.Title+": "+target.Expr] = target.Expr
		}
	}
	if len(all) < 15 {
		t.Fatalf("only %d expressions", len(all))
	}
	return all
}

// TestMonitoringNamesMetrics checks that a running server has every metric of the dashboard and the alerts.
func TestMonitoringNamesMetrics(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t)
	config := server.RESTConfig()
	objects := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
	watched, err := objects.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Stop()
	seen := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "seen"}}
	if _, err := objects.Create(t.Context(), seen, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	q := &inquiry{client, strings.TrimSuffix(config.Host, "/")}
	has := map[string]float64{}
	for has["apiserver_watch_events_total"] == 0 { // until the watch has sent its event
		_, text, err := q.get(t.Context(), "/metrics", http.StatusOK)
		if err != nil {
			t.Fatal(err)
		}
		has = sums(text)
	}
	// /metrics/slis has the metrics of the health checks, once a client has requested the checks.
	for _, path := range []string{"/readyz", "/metrics/slis"} {
		_, text, err := q.get(t.Context(), path, http.StatusOK, http.StatusInternalServerError)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(has, sums(text))
	}
	levels, err := os.ReadFile(filepath.Join("..", "..", "..", "internal", "front", "figures", "levels.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for where, expression := range expressions(t) {
		metrics := metricsOf(expression)
		if len(metrics) == 0 {
			t.Errorf("%s names no metric", where)
		}
		if strings.Count(expression, "(") != strings.Count(expression, ")") ||
			strings.Count(expression, "{") != strings.Count(expression, "}") {
			t.Errorf("%s: brackets are open", where)
		}
		for _, name := range metrics {
			_, there := has[name]
			if !there && !(slices.Contains(rare, name) && strings.Contains(string(levels), name)) {
				t.Errorf("%s: a server has no %s", where, name)
			}
		}
	}
}
