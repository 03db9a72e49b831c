// Package operators runs operators of other projects against a server.
package operators

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// limit ends a test that hangs; it measures nothing.
const limit = 3 * time.Minute

// binaries is the directory with the programs under test. TestMain sets it once.
var binaries string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

// runTests builds the programs, unless OPERATORS_BINARIES names a directory with them.
func runTests(m *testing.M) int {
	if binaries = os.Getenv("OPERATORS_BINARIES"); binaries != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "bowsprit-operators-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binaries = dir
	for _, build := range [][]string{
		{"-C", "../..", "build", "-o", filepath.Join(dir, "bowsprit"), "./cmd/bowsprit"},
		{"build", "-o", filepath.Join(dir, "certmanager"), "./certmanager"},
		{"-C", "prometheus", "build", "-o", filepath.Join(dir, "prometheus-operator"),
			"github.com/prometheus-operator/prometheus-operator/cmd/operator"},
		{"-C", "rollouts", "build", "-o", filepath.Join(dir, "rollouts-controller"),
			"github.com/argoproj/argo-rollouts/cmd/rollouts-controller"},
		{"-C", "jobset", "build", "-o", filepath.Join(dir, "jobset-controller"), "sigs.k8s.io/jobset"},
		{"-C", "jobset", "test", "-c", "-o", filepath.Join(dir, "jobset-suite"), "sigs.k8s.io/jobset/test/e2e"},
		{"-C", "lws", "build", "-o", filepath.Join(dir, "lws-controller"), "sigs.k8s.io/lws/cmd"},
		{"-C", "lws", "test", "-c", "-o", filepath.Join(dir, "lws-suite"), "sigs.k8s.io/lws/test/e2e"},
		{"-C", "metrics", "build", "-o", filepath.Join(dir, "metrics-server"),
			"sigs.k8s.io/metrics-server/cmd/metrics-server"},
		{"-C", "metrics", "build", "-o", filepath.Join(dir, "adapter"), "./adapter"},
	} {
		cmd := exec.Command("go", build...)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "go %v: %v\n", build, err)
			return 1
		}
	}
	return m.Run()
}

// server is a running bowsprit with clients.
type server struct {
	kubeconfig string
	config     *rest.Config
	typed      *kubernetes.Clientset
	dynamic    dynamic.Interface
	mapper     *restmapper.DeferredDiscoveryRESTMapper
}

// start starts an ephemeral server with additional flags. It stops when the test ends.
func start(t *testing.T, flags ...string) *server {
	t.Helper()
	s := &server{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	ready := make(chan struct{})
	out := &watcher{want: "Bowsprit is ready", found: ready}
	launch(t, out, "bowsprit", append([]string{
		"serve", "--ephemeral", "--secure-port=0", "--write-kubeconfig=" + s.kubeconfig,
	}, flags...)...)
	select {
	case <-ready:
	case <-time.After(limit):
		t.Fatal("bowsprit did not start")
	}
	var err error
	s.config, err = clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	must(t, err)
	s.config.QPS = -1
	s.typed, err = kubernetes.NewForConfig(s.config)
	must(t, err)
	s.dynamic, err = dynamic.NewForConfig(s.config)
	must(t, err)
	s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.typed.Discovery()))
	return s
}

// watcher closes found when the written text first contains want.
type watcher struct {
	written bytes.Buffer
	want    string
	found   chan struct{}
}

func (w *watcher) Write(p []byte) (int, error) {
	before := strings.Contains(w.written.String(), w.want)
	n, err := w.written.Write(p)
	if !before && strings.Contains(w.written.String(), w.want) {
		close(w.found)
	}
	return n, err
}

// launch starts one of the programs, and stops it when the test ends. It shows the program's output if the test failed.
func launch(t *testing.T, stdout io.Writer, name string, args ...string) {
	t.Helper()
	log := new(bytes.Buffer)
	cmd := exec.Command(filepath.Join(binaries, name), args...)
	cmd.Stdout, cmd.Stderr = stdout, log
	if stdout == nil {
		cmd.Stdout = log
	}
	must(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(limit, func() { cmd.Process.Kill() })
		defer kill.Stop()
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s wrote:\n%s", name, tail(log.String()))
		}
	})
}

func tail(log string) string { return log[max(0, len(log)-8000):] }

// moduleDir returns the source directory of a dependency.
func moduleDir(t *testing.T, in, module string) string {
	t.Helper()
	out, err := exec.Command("go", "-C", in, "list", "-m", "-f", "{{.Dir}}", module).Output()
	must(t, err)
	return strings.TrimSpace(string(out))
}

// apply creates the objects of files and directories.
func (s *server) apply(ctx context.Context, t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		files := []string{path}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			files, err = filepath.Glob(filepath.Join(path, "*.yaml"))
			must(t, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			must(t, err)
			s.create(ctx, t, string(data))
		}
	}
	s.mapper.Reset() // the objects may include definitions
}

// create creates the objects of a YAML text.
func (s *server) create(ctx context.Context, t *testing.T, text string) {
	t.Helper()
	s.createEdited(ctx, t, text, func(*unstructured.Unstructured) {})
}

// createEdited is create with an edit to each object.
func (s *server) createEdited(ctx context.Context, t *testing.T, text string, edit func(*unstructured.Unstructured)) {
	t.Helper()
	docs := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		must(t, err)
		obj := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal(doc, &obj.Object))
		if len(obj.Object) == 0 {
			continue
		}
		edit(obj)
		_, err = s.resource(t, obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace()).Create(ctx, obj,
			metav1.CreateOptions{})
		must(t, err)
	}
}

// resource returns the client for a kind.
func (s *server) resource(t *testing.T, apiVersion, kind, namespace string) dynamic.ResourceInterface {
	t.Helper()
	gvk := (&unstructured.Unstructured{
		Object: map[string]any{"apiVersion": apiVersion, "kind": kind},
	}).GroupVersionKind()
	mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	must(t, err)
	if namespace == "" {
		return s.dynamic.Resource(mapping.Resource)
	}
	return s.dynamic.Resource(mapping.Resource).Namespace(namespace)
}

// until calls f repeatedly until it returns true.
func until(ctx context.Context, t *testing.T, desc string, f func() (bool, error)) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := f()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not in time; last error: %v", desc, err)
		}
	}
}

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// into decodes an object into its Go type.
func into[T any](obj *unstructured.Unstructured) (*T, error) {
	out := new(T)
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, out)
}
