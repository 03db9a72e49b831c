package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/testing/page"
)

// elsewhere maps a page to the test file that runs its commands. These pages need more than this program and Go.
var elsewhere = map[string]string{
	"docs/aggregation":                "test/e2e/aggregation_test.go",
	"docs/chart":                      "test/node/release_test.go",
	"docs/extension":                  "test/e2e/pages_test.go",
	"docs/nodes":                      "test/node/controllers_test.go",
	"docs/packages":                   "test/journeys/journeys_test.go",
	"docs/schedulers":                 "test/node/schedulers_test.go",
	"docs/tutorials/clients":          "test/e2e/pages_test.go",
	"docs/tutorials/extension-server": "test/e2e/pages_test.go",
	"docs/tutorials/konnectivity":     "test/e2e/pages_test.go",
	"docs/tutorials/move":             "test/e2e/move_test.go",
	"docs/tutorials/proxies":          "test/e2e/pages_test.go",
	"docs/ways-in":                    "test/e2e/pages_test.go",
}

// longer are the blocks of commands that a test runs which needs more than CI has, by their first line: the file of
// that test, which names the page and the line. make setup-envtest-test and make journeys run them.
var longer = []struct{ page, begins, file string }{
	{"docs/packages", "go install sigs.", "test/clients/setup_envtest_test.go"},
	{"docs/tutorials/test-an-operator", "$ go get ", "test/journeys/journeys_test.go"},
	{"docs/tutorials/test-an-operator", "$ go test ", "test/journeys/journeys_test.go"},
}

// excused lists blocks of commands that no test runs unchanged, by their first line, with the reason.
var excused = []struct{ page, begins, why string }{
	{"CONTRIBUTING", "make setup ", "CI runs most of it; TestTargets looks for each target"},
	{"README", "git clone ", "fetches from the network; the targets are those of CI"},
	{"docs/backup", "bowsprit snapshot save backup.db\netcdutl", "needs three machines; TestMove of test/e2e has three members"},
	{"docs/backup", "etcdctl ", "needs three machines; TestMove of test/e2e has three members"},
	{"docs/backup", "bowsprit kube-apiserver ", "TestPeersOfKubeAPIServer of test/e2e has such servers"},
	{"docs/envtest", "KUBEBUILDER_ASSETS=", "needs a suite; TestSimulatedAssets starts the servers of each line"},
	{"docs/extension", "$ bowsprit extension init ", "the tutorial of extension servers runs it"},
	{"docs/first-steps", "$ go install ", "fetches from the network"},
	{"docs/following-kubernetes", "make libraries-all LIBRARIES=", "hours; oracle-builtins is its other part"},
	{"docs/konnectivity", "$ bowsprit konnectivity-server ", "names files of a cluster; the tutorial runs the server"},
	{"docs/konnectivity", "$ bowsprit konnectivity-agent ", "names files of a pod; the tutorial runs the agent"},
	{"docs/nodes", "bowsprit serve ", "make node starts its server with these flags"},
	{"docs/nodes", "bowsprit kubeconfig --user system:kube-proxy ", "TestKubeProxy of test/node runs it with its flags"},
	{"docs/nodes", "kubectl config ", "make node writes this kubeconfig"},
	{"docs/nodes", "kubectl get certificatesigningrequests", "the name of the request differs each time"},
	{"docs/packages", "docker run ", "needs docker; TestImage of tools/release reads the image"},
	{"docs/performance", "", "measures for an hour, with programs that are not in this repository"},
	{"docs/run-as-pod", "$ bowsprit serve ", "needs python3; TestRunPython runs the operator where it is"},
	{"docs/schema", "make bench-engine", "measures for ten minutes"},
	{"docs/tutorials/clients", "$ go mod init ", "fetches from the network; the test makes the same module"},
	{"docs/tutorials/proxies", "$ ssh ", "needs another machine; TestSOCKS5Page of test/e2e runs a real ssh"},
	{"docs/ways-in", "$ ssh ", "needs another machine; TestSOCKS5Page of test/e2e runs a real ssh"},
	{"docs/ways-in", "$ HTTPS_PROXY=", "goes through that ssh"},
	{"docs/workloads", "$ git clone ", "fetches from the network; oracle-builtins/stages reads these Stages"},
	{"docs/workloads", "$ kubectl apply -f kwok/", "needs what was fetched; oracle-builtins/stages reads these"},
}

// commandLine is a line of a block that a reader is to type.
var commandLine = regexp.MustCompile(`(?m)^(\$ |(bowsprit|brew|curl|docker|dpkg|etcdctl|etcdutl|git|go|helm|kubectl|make|npm|` +
	`openssl|rpm|ssh|[A-Z_]+=\S+ [a-z]+) )`)

// TestEveryPage holds that each block of commands, of every page, is run by a test or excused.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	used := make([]bool, len(excused))
	for name, text := range allPages(t) {
		executed := slices.Contains(alone, name) || strings.HasPrefix(name, "docs/tutorials/") || runElsewhere(t, name)
		for _, b := range page.Blocks(text) {
			shown := b.Language == "" || b.Language == "console"
			if b.Language != "sh" && (!shown || !commandLine.MatchString(b.Text)) {
				continue
			}
			found := slices.IndexFunc(excused, func(e struct{ page, begins, why string }) bool {
				return e.page == name && strings.HasPrefix(b.Text, e.begins)
			})
			switch {
			case executed && b.Language == "sh":
			case name == "docs/aggregation": // its test takes the page's only block
			case runByLonger(t, name, b.Text):
			case found < 0:
				t.Errorf("%s.md:%d: no test runs these commands:\n%s", name, b.Line, b.Text)
			default:
				used[found] = true
			}
		}
	}
	for i, e := range excused {
		if !used[i] {
			t.Errorf("%s.md has no commands that begin with %q, or they are run", e.page, e.begins)
		}
	}
}

// runByLonger reports whether a longer test runs a block.
func runByLonger(t *testing.T, name, text string) bool {
	t.Helper()
	for _, l := range longer {
		if l.page == name && strings.HasPrefix(text, l.begins) {
			source, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(l.file)))
			if err != nil || !strings.Contains(string(source), l.begins) ||
				!strings.Contains(string(source), filepath.Base(name)+".md") {
				t.Errorf("%s does not run %q of %s.md: %v", l.file, l.begins, name, err)
			}
			return true
		}
	}
	return false
}

// runElsewhere reports whether another test runs a page, which its file must name.
func runElsewhere(t *testing.T, name string) bool {
	t.Helper()
	file := elsewhere[name]
	if file == "" {
		return false
	}
	source, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(file)))
	base := filepath.Base(name)
	named := strings.Contains(string(source), `"`+base+`"`) || strings.Contains(string(source), base+".md")
	if err != nil || !named {
		t.Errorf("%s does not run %s.md: %v", file, name, err)
	}
	return true
}

// allPages returns the text of every page, by its name without ".md".
func allPages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all[strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "../../"), ".md")] = string(text)
		}
	}
	return all
}

// makeTargets matches the make targets that a page names, in a block or in a sentence.
var makeTargets = regexp.MustCompile("(?m)(?:^(?:\\$ )?|`|&& )make ([a-z][a-z0-9-]*)")

var inlineCode = regexp.MustCompile("`[^`\n]+`")

// TestTargets looks in the Makefile for each target that a page names.
func TestTargets(t *testing.T) {
	t.Parallel()
	makefile := read(t, filepath.Join("..", ".."), "Makefile")
	named := 0
	for name, text := range allPages(t) {
		commands := inlineCode.FindAllString(text, -1)
		for _, b := range page.Blocks(text) {
			commands = append(commands, b.Text)
		}
		for _, m := range makeTargets.FindAllStringSubmatch(strings.Join(commands, "\n"), -1) {
			named++
			if !regexp.MustCompile(`(?m)^([a-z0-9-]+ )*` + m[1] + `( [a-z0-9-]+)*:`).MatchString(makefile) {
				t.Errorf("%s.md names make %s, which is no target", name, m[1])
			}
		}
	}
	if named < 20 {
		t.Errorf("only %d targets are named", named)
	}
}
