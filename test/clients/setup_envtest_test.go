package clients

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// linked matches the folder of the archives in an index.
var linked = regexp.MustCompile(`selfLink: \S+/`)

// TestSetupEnvtest makes the real setup-envtest install from the index of a release, which RELEASE names, by the
// commands of docs/packages.md, and starts the installed programs as a suite does. make setup-envtest-test makes the
// release.
func TestSetupEnvtest(t *testing.T) {
	release := os.Getenv("RELEASE")
	if release == "" {
		t.Skip("RELEASE is not set: make setup-envtest-test sets it")
	}
	index, err := os.ReadFile(filepath.Join(release, "envtest-releases.yaml"))
	must(t, err)
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(release)))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	here := linked.ReplaceAllString(string(index), "selfLink: "+server.URL+"/")
	mux.HandleFunc("/envtest-releases.yaml", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(here))
	})
	dir := t.TempDir()
	t.Cleanup(func() { // setup-envtest makes folders that cannot be written to
		_ = filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				return os.Chmod(name, 0o700)
			}
			return err
		})
	})
	env := &envtest.Environment{BinaryAssetsDirectory: followPage(t, server.URL, dir)}
	config, err := env.Start()
	must(t, err)
	t.Cleanup(func() { must(t, env.Stop()) })
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	version, err := client.Discovery().ServerVersion()
	must(t, err)
	if !strings.Contains(version.GitVersion, "bowsprit") {
		t.Errorf("the server is %s", version.GitVersion)
	}
	_, err = client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	must(t, err)
	list := exec.CommandContext(t.Context(), filepath.Join(env.BinaryAssetsDirectory, "kubectl"), "version", "--client")
	if out, err := list.CombinedOutput(); err != nil || !strings.Contains(string(out), "Client Version") {
		t.Errorf("kubectl: %v: %s", err, out)
	}
}

// suite stands for a reader's tests: it starts the programs in KUBEBUILDER_ASSETS.
const suite = `package suite

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

func TestSuite(t *testing.T) {
	env := &envtest.Environment{}
	if _, err := env.Start(); err != nil {
		t.Fatal(err)
	}
	if err := env.Stop(); err != nil {
		t.Error(err)
	}
}
`

// followPage runs the commands of docs/packages.md on setup-envtest in a module with a suite, word for word except for
// the place of the index. It returns the resulting KUBEBUILDER_ASSETS, which is below dir.
func followPage(t *testing.T, server, dir string) string {
	t.Helper()
	const published = "https://github.com/bowsprit/bowsprit/releases/download/VERSION"
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "packages.md"))
	must(t, err)
	i := strings.Index(string(text), "```\ngo install sigs.")
	if i < 0 || !strings.Contains(string(text[i:]), published) {
		t.Fatal("packages.md does not say how setup-envtest is used")
	}
	commands, _, _ := strings.Cut(strings.TrimPrefix(string(text[i:]), "```\n"), "```\n")
	module := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(name)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(module, name), text, 0o600))
	}
	must(t, os.WriteFile(filepath.Join(module, "suite_test.go"), []byte(suite), 0o600))
	script := "set -e\n" + strings.ReplaceAll(commands, published, server) + "\nprintf '%s' \"$KUBEBUILDER_ASSETS\" > assets\n"
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = module
	bin := filepath.Join(dir, "bin")
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "GOBIN="+bin, "GOFLAGS=-mod=mod "+os.Getenv("GOFLAGS"),
		"PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ok") {
		t.Fatalf("the commands of packages.md: %v: %s", err, out)
	}
	assets, err := os.ReadFile(filepath.Join(module, "assets"))
	must(t, err)
	if !strings.HasPrefix(string(assets), dir) {
		t.Fatalf("installed in %s, not below %s", assets, dir)
	}
	return string(assets)
}
