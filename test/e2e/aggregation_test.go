package e2e

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/testing/freeport"
)

// sampleServer is where k8s.io/sample-apiserver, unmodified, can listen as an extension API server, with its own etcd.
type sampleServer struct {
	etcd     *cluster
	ip, port string
	// module has the sample's manifests.
	module string
}

// newSample finds an address for the sample server. EndpointSlices refuse loopback addresses.
func newSample(t *testing.T) *sampleServer {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	s := &sampleServer{etcd: startCluster(t, 1, nil)}
	for _, a := range all {
		if ip := a.(*net.IPNet).IP.To4(); ip != nil && ip.IsGlobalUnicast() {
			s.ip = ip.String()
		}
	}
	if s.ip == "" {
		t.Skip("this machine has no address but that of the loopback interface")
	}
	if _, s.port, err = net.SplitHostPort(freeport.Address(t)); err != nil {
		t.Fatal(err)
	}
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/sample-apiserver")
	list.Dir = "sample"
	out, err := list.Output()
	if err != nil {
		t.Fatalf("where the sample's manifests are: %v", err)
	}
	s.module = strings.TrimSpace(string(out))
	return s
}

// manifests links the manifests of the sample server into a story's directory, as in a checkout.
func (s *sampleServer) manifests(t *testing.T, dir string) {
	t.Helper()
	if err := os.Symlink(filepath.Join(s.module, "artifacts"), filepath.Join(dir, "artifacts")); err != nil {
		t.Fatal(err)
	}
}

// environment returns the variables for scripts.
func (s *sampleServer) environment() []string {
	return []string{
		"SAMPLE_ETCD=" + s.etcd.endpoints(), "SAMPLE_IP=" + s.ip, "SAMPLE_PORT=" + s.port,
	}
}

// startSample is the script by which stories start the sample server, as the page's Deployment would: with the
// certificate of its Secret (tls.crt, tls.key) and the token of its service account. Arguments of the script are
// further flags. sample.pid has its process.
const startSample = `#!/bin/sh
set -e
cp "$KUBECONFIG" sample.kubeconfig
token=$(kubectl create token apiserver -n wardle)
kubectl --kubeconfig=sample.kubeconfig config set-credentials apiserver --token="$token"
kubectl --kubeconfig=sample.kubeconfig config set-context --current --user=apiserver
setsid sample-apiserver --etcd-servers="$SAMPLE_ETCD" --bind-address="$SAMPLE_IP" --secure-port="$SAMPLE_PORT" \
  --kubeconfig=sample.kubeconfig --authentication-kubeconfig=sample.kubeconfig \
  --authorization-kubeconfig=sample.kubeconfig --tls-cert-file=tls.crt --tls-private-key-file=tls.key "$@" \
  >sample.log 2>&1 </dev/null &
echo $! >sample.pid
`

// endSample ends the sample server that a story has started in dir, if any.
func endSample(t *testing.T, dir string) {
	t.Cleanup(func() {
		pid, err := os.ReadFile(filepath.Join(dir, "sample.pid"))
		if err != nil {
			return
		}
		_ = exec.Command("kill", "-9", strings.TrimSpace(string(pid))).Run() // it may have ended
		if log, err := os.ReadFile(filepath.Join(dir, "sample.log")); err == nil && t.Failed() {
			t.Logf("the sample server:\n%s", tail(string(log), 8000))
		}
	})
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// frontProxyFlags returns the flags of the page "Configure the Aggregation Layer".
func frontProxyFlags(t *testing.T) []string {
	t.Helper()
	var none *pair
	authority := none.sign(t, "front-proxy-ca")
	client := authority.sign(t, "front-proxy-client")
	return []string{
		"--requestheader-client-ca-file=" + authority.certFile,
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + client.certFile,
		"--proxy-client-key-file=" + client.keyFile,
		"--enable-aggregator-routing=true",
	}
}

// TestAggregation runs testdata/aggregation/sample.txt, the steps of the page "Set up an Extension API Server" with the
// sample server and the later steps of its users, against a server with the flags of the page "Configure the
// Aggregation Layer", and one without flags. The expected output was recorded from kube-apiserver.
func TestAggregation(t *testing.T) {
	t.Parallel()
	const file = "testdata/aggregation/sample.txt"
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		flags []string
	}{{"flags of the page", frontProxyFlags(t)}, {"no flags", nil}} {
		if reference != "" && tc.flags == nil {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			at := newSample(t)
			s := &session{server: startStory(t, false, tc.flags), dir: t.TempDir(), env: at.environment()}
			at.manifests(t, s.dir)
			if err := os.WriteFile(filepath.Join(s.dir, "start-sample"), []byte(startSample), 0o755); err != nil {
				t.Fatal(err)
			}
			s.hook = startHook(t, s.dir)
			t.Cleanup(s.endBackground)
			endSample(t, s.dir)
			got := s.run(t, strings.Split(strings.TrimSuffix(string(want), "\n"), "\n"))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// flunders are the sample server's objects.
var flunders = schema.GroupVersionResource{Group: "wardle.example.com", Version: "v1alpha1", Resource: "flunders"}

// TestAggregationKill kills the sample server, and this one, while clients create flunders. Acknowledged flunders must
// exist afterwards, other groups must be served meanwhile, and at last the namespace is deleted with its contents.
func TestAggregationKill(t *testing.T) {
	if reference != "" {
		t.Skip("the namespace controller is not kube-apiserver's")
	}
	t.Parallel()
	const namespace = "load"
	at := newSample(t)
	site := startSite(t, append(frontProxyFlags(t), withoutAccounts)...)
	s := installSample(t, at, site)
	kubectl(t, site.server, nil, "create", "namespace", namespace)
	acknowledged := map[string]string{} // name to uid
	for round, kill := range []func(){
		func() { s.killSample(t); s.refused(t); s.startSample(t) },
		func() { site.server.kill(); site.start() },
		func() { s.killSample(t); site.server.kill(); site.start(); s.refused(t); s.startSample(t) },
	} {
		l := startLoad(t, site, namespace, round)
		l.wait(t, 40)
		kill()
		l.wait(t, 80)
		maps.Copy(acknowledged, l.end())
	}
	list, err := dynamic.NewForConfigOrDie(site.server.config(t)).Resource(flunders).Namespace(namespace).
		List(bounded(t, commandLimit), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]string{}
	for _, item := range list.Items {
		have[item.GetName()] = string(item.GetUID())
	}
	for name, uid := range acknowledged {
		if have[name] != uid {
			t.Errorf("%s was acknowledged with uid %s, and has uid %q now", name, uid, have[name])
		}
	}
	kubectl(t, site.server, nil, "delete", "namespace", namespace, "--timeout=60s") // waits
	if out := kubectl(t, site.server, nil, "get", "flunders", "-A", "-o", "name"); len(out) > 0 {
		t.Errorf("left after its namespace: %s", out)
	}
}

// installSample runs the steps of sample.txt up to the available APIService.
func installSample(t *testing.T, at *sampleServer, site *site) *session {
	t.Helper()
	story, err := os.ReadFile("testdata/aggregation/sample.txt")
	if err != nil {
		t.Fatal(err)
	}
	steps, _, found := strings.Cut(string(story), "# 15.")
	if !found {
		t.Fatal("sample.txt has no step 15")
	}
	s := &session{server: site.server, dir: t.TempDir(), env: at.environment()}
	at.manifests(t, s.dir)
	if err := os.WriteFile(filepath.Join(s.dir, "start-sample"), []byte(startSample), 0o755); err != nil {
		t.Fatal(err)
	}
	s.hook = startHook(t, s.dir)
	endSample(t, s.dir)
	s.run(t, strings.Split(strings.TrimSpace(steps), "\n"))
	s.site = site
	return s
}

// startSample starts the sample server again, and waits until it is available.
func (s *session) startSample(t *testing.T) {
	t.Helper()
	s.server = s.site.server
	for _, line := range []string{
		"start-sample", "kubectl wait --for=condition=Available --timeout=50s apiservice/v1alpha1.wardle.example.com",
	} {
		if out, err := s.command(t, line); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
}

func (s *session) killSample(t *testing.T) {
	t.Helper()
	if out, err := s.command(t, "kill -9 $(cat sample.pid)"); err != nil {
		t.Fatalf("kill: %v: %s", err, out)
	}
}

// refused checks the responses to requests while the sample server is down.
func (s *session) refused(t *testing.T) {
	t.Helper()
	s.server = s.site.server
	config := s.server.config(t)
	_, err := dynamic.NewForConfigOrDie(config).Resource(flunders).List(bounded(t, commandLimit), metav1.ListOptions{})
	if !apierrors.IsServiceUnavailable(err) ||
		!strings.Contains(err.Error(), `APIService "v1alpha1.wardle.example.com" is not available: `) {
		t.Errorf("flunders without their server: %v", err)
	}
	if _, err := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces().List(bounded(t, commandLimit),
		metav1.ListOptions{}); err != nil {
		t.Errorf("namespaces without the sample server: %v", err)
	}
	if out := kubectl(t, s.server, nil, "api-resources", "--api-group=apps", "-o", "name"); len(out) == 0 {
		t.Error("apps is not served without the sample server")
	}
}

// load is clients that create flunders until the test ends them.
type load struct {
	running sync.WaitGroup
	stop    context.CancelFunc

	mu struct {
		sync.Mutex
		acknowledged map[string]string
		more         chan struct{} // closed and replaced by each creation
	}
}

func startLoad(t *testing.T, site *site, namespace string, round int) *load {
	ctx, stop := context.WithCancel(t.Context())
	l := &load{stop: stop}
	l.mu.acknowledged, l.mu.more = map[string]string{}, make(chan struct{})
	config := site.server.config(t)
	config.WarningHandler = rest.NoWarnings{} // the kind is deprecated
	client := dynamic.NewForConfigOrDie(config).Resource(flunders).Namespace(namespace)
	for w := range 8 {
		l.running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				made, err := client.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder",
					"metadata": map[string]any{"name": fmt.Sprintf("round-%d-writer-%d-%d", round, w, i)},
				}}, metav1.CreateOptions{})
				if err != nil {
					continue // a server is down, so the result of the creation is unknown
				}
				l.mu.Lock()
				l.mu.acknowledged[made.GetName()] = string(made.GetUID())
				close(l.mu.more)
				l.mu.more = make(chan struct{})
				l.mu.Unlock()
			}
		})
	}
	t.Cleanup(func() { l.end() })
	return l
}

// wait waits until so many more objects are acknowledged.
func (l *load) wait(t *testing.T, n int) {
	t.Helper()
	limit := time.NewTimer(startLimit)
	defer limit.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for want := len(l.mu.acknowledged) + n; len(l.mu.acknowledged) < want; {
		more := l.mu.more
		l.mu.Unlock()
		select {
		case <-more:
		case <-limit.C:
			l.mu.Lock()
			t.Fatalf("%d objects are acknowledged, want %d", len(l.mu.acknowledged), want)
		}
		l.mu.Lock()
	}
}

// end stops the clients and returns the acknowledged flunders.
func (l *load) end() map[string]string {
	l.stop()
	l.running.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.acknowledged
}

// TestAggregationPage runs the first commands of docs/aggregation.md with the sample server on this machine, unchanged
// but for the port.
func TestAggregationPage(t *testing.T) {
	if reference != "" {
		t.Skip("the page is about bowsprit")
	}
	t.Parallel()
	page, err := os.ReadFile("../../docs/aggregation.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(page), "```\n")
	if len(parts) < 3 {
		t.Fatalf("the page has %d parts, want a block of commands first", len(parts))
	}
	host, port, err := net.SplitHostPort(freeport.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	s := &session{server: startServer(t, "--ephemeral"), dir: t.TempDir()}
	s.hook = startHook(t, s.dir)
	etcd := startCluster(t, 1, nil)
	other := exec.Command(filepath.Join(binaries, "sample-apiserver"), "--etcd-servers="+etcd.endpoints(),
		"--bind-address="+host, "--secure-port="+port, "--kubeconfig="+s.server.kubeconfig, "--cert-dir="+s.dir,
		"--authentication-kubeconfig="+s.server.kubeconfig, "--authorization-kubeconfig="+s.server.kubeconfig)
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	out, err := s.command(t, "set -e\n"+strings.ReplaceAll(parts[1], "8443", port))
	if err != nil || !strings.Contains(out, "No resources found in default namespace.") {
		t.Errorf("%v:\n%s", err, out)
	}
}
