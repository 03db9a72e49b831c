package server

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/server/parts"
)

var update = flag.Bool("update", false, "rewrite "+metricsPage)

// metricsPage lists every metric of a server; its head is written by hand.
const metricsPage = "../../docs/metrics.md"

// levelsFile lists the stability levels of Kubernetes' metrics, and the metrics of libraries.
const levelsFile = "../front/figures/levels.txt"

// fullConfig enables every part that adds metrics when it is used.
func fullConfig(t *testing.T) config.Config {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	c := config.Config{Ephemeral: true}
	c.Audit.PolicyFile = write("audit.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
	c.Audit.LogFile = filepath.Join(dir, "audit.log")
	c.Encryption.ConfigFile = write("encryption.yaml", `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources: [{resources: [secrets], providers: [{identity: {}}]}]
`)
	c.Encryption.AutomaticReload = true
	c.Authorization.ConfigFile = write("authorization.yaml", `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers: [{type: Node, name: node}, {type: RBAC, name: rbac}]
`)
	c.Egress.ConfigFile = write("egress.yaml", `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections: [{name: cluster, connection: {proxyProtocol: Direct}}]
`)
	c.Admission.ConfigFile = write("admission.yaml", `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionPolicy
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ValidatingAdmissionPolicyConfiguration
    staticManifestsDir: `+t.TempDir()+"\n")
	c.API.Features = map[string]bool{"ManifestBasedAdmissionControlConfig": true}
	c.Workloads.Simulate = map[string]string{"nodes": "1"}
	return c
}

var (
	metricFamily = regexp.MustCompile(`fqName: "([^"]*)", help: "((?:[^"\\]|\\.)*)",.* constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}`)
	rows         = regexp.MustCompile("(?m)^\\| `([a-z0-9_:]+)` \\|")
	ofProcess    = regexp.MustCompile(`^(go|process)_`)

	ofMetrics = regexp.MustCompile(`(?m)^# HELP ((?:registered|disabled|hidden|cardinality)_[a-z_]+) (?:\[[A-Z]+\] )?(.*)$`)
)

// undescribed returns the help of metrics that no collector describes beforehand. The help of priority and fairness
// comes from the source of its functions, the help of the metrics about metrics from the page.
func undescribed(t *testing.T, page string) map[string]string {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), "../front/flow/metrics.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{} // of constants
	all := map[string]string{}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			if len(n.Values) == 1 {
				texts[n.Names[0].Name] = literal(t, n.Values[0], texts)
			}
		case *ast.CallExpr:
			if made, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) > 2 &&
				slices.Contains([]string{"gauge", "counter", "histogram"}, made.Sel.Name) {
				all["apiserver_flowcontrol_"+literal(t, n.Args[0], texts)] = literal(t, n.Args[1], texts)
			}
		}
		return true
	})
	delete(all, "apiserver_flowcontrol_")
	if len(all) < 20 {
		t.Fatalf("only %d metrics of priority and fairness", len(all))
	}
	for _, m := range ofMetrics.FindAllStringSubmatch(page, -1) {
		all[m[1]] = m[2]
	}
	return all
}

// metricRows returns the lines of the page's tables: Kubernetes' metrics, its libraries' metrics, and our own. page is
// the text of /metrics.
func metricRows(t *testing.T, r *running, levels map[string]string, page string) (kube, own []string) {
	t.Helper()
	descs := make(chan *prometheus.Desc)
	go func() {
		r.host.Metrics.Describe(descs)
		close(descs)
	}()
	done := map[string]bool{}
	for d := range descs {
		m := metricFamily.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("not understood: %s", d)
		}
		name, help, labels := m[1], unquote(t, m[2]), labelNames(m[3], m[4])
		if done[name] || ofProcess.MatchString(name) {
			continue
		}
		done[name] = true
		help = strings.ReplaceAll(strings.Join(strings.Fields(help), " "), "|", `\|`)
		if level, known := levels[name]; known {
			kube = append(kube, fmt.Sprintf("| `%s` | %s | %s | %s |", name, level, labels, help))
		} else {
			own = append(own, fmt.Sprintf("| `%s` | %s | %s |", name, labels, help))
		}
	}
	for name, help := range undescribed(t, page) {
		kube = append(kube, fmt.Sprintf("| `%s` | %s | | %s |", name, levels[name], help))
		done[name] = true
	}
	for name, level := range levels {
		ofLibrary := func(begin string) bool { return strings.HasPrefix(name, begin) }
		if !done[name] && slices.ContainsFunc(r.libraries, ofLibrary) {
			kube = append(kube, fmt.Sprintf("| `%s` | %s | | see Kubernetes' reference of metrics |", name, level))
		}
	}
	slices.Sort(kube)
	slices.Sort(own)
	return kube, own
}

// literal returns the text of an expression of literals and constants, "" of any other.
func literal(t *testing.T, e ast.Expr, constants map[string]string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return unquote(t, strings.Trim(e.Value, `"`))
		}
	case *ast.Ident:
		return constants[e.Name]
	case *ast.BinaryExpr:
		return literal(t, e.X, constants) + literal(t, e.Y, constants)
	}
	return ""
}

func unquote(t *testing.T, text string) string {
	t.Helper()
	var plain string
	if _, err := fmt.Sscanf(`"`+text+`"`, "%q", &plain); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return plain
}

// labelNames returns the labels of a Desc; constant ones have values.
func labelNames(constant, variable string) string {
	var names []string
	for _, l := range strings.Split(constant+","+variable, ",") {
		if name, _, _ := strings.Cut(strings.TrimSpace(l), "="); name != "" {
			names = append(names, "`"+strings.TrimPrefix(name, "c(")+"`")
		}
	}
	return strings.Join(names, ", ")
}

func readLevelNames(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(levelsFile)
	if err != nil {
		t.Fatal(err)
	}
	levels := map[string]string{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		levels[words[0]] = words[1]
		if len(words) > 2 {
			levels[words[0]] += ", deprecated since " + words[2]
		}
	}
	return levels
}

// TestMetricsReference compares docs/metrics.md with the metrics that a server registers and shows. -update rewrites
// the tables.
func TestMetricsReference(t *testing.T) {
	server, err := New(fullConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	p := prepare(server.config, parts.Of(&server.config, ""))
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	r, client := start(t, server, p)
	text, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	kube, own := metricRows(t, r, readLevelNames(t), client.text("/metrics"))
	head, _, found := strings.Cut(string(text), "\n## Kubernetes' metrics\n")
	if !found {
		t.Fatalf("%s has no section of Kubernetes' metrics", metricsPage)
	}
	want := head + "\n## Kubernetes' metrics\n\n| metric | level | labels | meaning |\n|---|---|---|---|\n" +
		strings.Join(kube, "\n") + "\n\n## Others\n\n| metric | labels | meaning |\n|---|---|---|\n" +
		strings.Join(own, "\n") + "\n"
	if *update {
		if err := os.WriteFile(metricsPage, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		for _, row := range append(kube, own...) {
			if !strings.Contains(string(text), row+"\n") {
				t.Errorf("not in %s: %s", metricsPage, row)
			}
		}
		for line := range strings.Lines(string(text)) {
			if rows.MatchString(line) && !strings.Contains(want, line) {
				t.Errorf("a server does not have: %s", line)
			}
		}
		t.Errorf("%s is not what a server has: go test ./internal/server -run TestMetricsReference -update", metricsPage)
	}
	client.do("POST", "/api/v1/namespaces/default/configmaps",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"counted"}}`, 201)
	listed := map[string]bool{}
	for _, row := range rows.FindAllStringSubmatch(want, -1) {
		listed[row[1]] = true
	}
	shown := 0
	for _, path := range []string{"/metrics", "/metrics/slis"} {
		for line := range strings.Lines(client.text(path)) {
			name, isType := strings.CutPrefix(line, "# TYPE ")
			if name, _, _ = strings.Cut(name, " "); !isType || ofProcess.MatchString(name) {
				continue
			}
			shown++
			if !listed[name] {
				t.Errorf("%s shows %s, which is not in %s", path, name, metricsPage)
			}
		}
	}
	if shown < 50 {
		t.Errorf("only %d metrics are shown", shown)
	}
}
