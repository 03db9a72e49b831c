package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	alerts    = "../../packaging/monitoring/alerts.yaml"
	dashboard = "../../packaging/monitoring/dashboard.json"
)

// prometheus returns a program of the package.
func prometheus(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("PROMETHEUS")
	if dir == "" {
		t.Skip("there is no Prometheus: make monitoring-test brings one")
	}
	return filepath.Join(dir, name)
}

// TestRules runs promtool to check the rules and their cases. Each alert has a case that fires and one that does not.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"check", "rules", alerts}, {"test", "rules", "alerts.yaml"}} {
		if out, err := exec.Command(prometheus(t, "promtool"), args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	var cases struct {
		Tests []struct {
			Rules []struct {
				Name   string `json:"alertname"`
				Alerts []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	parse(t, "alerts.yaml", &cases)
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, c := range cases.Tests {
		for _, r := range c.Rules {
			fires[r.Name] = fires[r.Name] || len(r.Alerts) > 0
			silent[r.Name] = silent[r.Name] || len(r.Alerts) == 0
		}
	}
	for _, name := range alertNames(t) {
		if !fires[name] || !silent[name] {
			t.Errorf("%s: a case in which it fires %v, one in which it does not %v", name, fires[name], silent[name])
		}
	}
}

func alertNames(t *testing.T) (names []string) {
	t.Helper()
	var rules struct {
		Groups []struct{ Rules []struct{ Alert string } }
	}
	parse(t, alerts, &rules)
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			names = append(names, r.Alert)
		}
	}
	if len(names) == 0 {
		t.Fatal("there are no alerts")
	}
	return names
}

func parse(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(file, err)
	}
}
