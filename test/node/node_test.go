package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/testing/page"
)

// The addresses of the node and of the service kubernetes. There is no kube-proxy: the server listens on the latter.
const (
	nodeAddress    = "192.0.2.10"
	serviceAddress = "10.0.0.1"
)

// pause is what containers do that only have to be there.
var pause = []string{"sh", "-c", "trap exit TERM INT; while :; do sleep 100000 & wait $!; done"}

// TestRealNode joins a kubelet with a bootstrap token, on which containerd and runc run pods: a Deployment, what
// kubectl does with pods, and Kubernetes' page about several schedulers as it stands, with the second scheduler as a
// Deployment. It is skipped where the machine cannot do it.
func TestRealNode(t *testing.T) {
	root := os.Getenv(inside)
	if root == "" {
		withNamespaces(t)
		return
	}
	sandbox(t, nodeAddress, serviceAddress)
	c := &cluster{home: os.Getenv(insideHome), port: "443", flags: []string{
		"--bind-address=0.0.0.0", "--advertise-address=" + nodeAddress, ownControllers,
		"--kubelet-preferred-address-types=InternalIP",
	}}
	began := time.Now()
	c.start(t)
	t.Cleanup(func() { c.stop(t) })
	defer func() {
		if t.Failed() {
			t.Log(c.sh(t, "kubectl get pods -A -o wide; kubectl get events -A; kubectl describe node one"))
		}
	}()
	c.startControllers(t, "--cluster-signing-duration=3m")
	c.startScheduler(t)
	runtime := c.startContainerd(t, root)
	kubelet := c.startKubelet(t)
	c.sh(t, "kubectl wait node one --for=create --timeout=120s")
	c.sh(t, "kubectl wait node one --for=condition=Ready --timeout=120s")
	t.Logf("the node is ready after %v", time.Since(began).Round(100*time.Millisecond))

	first, err := c.currentCertificate()
	if err != nil {
		t.Fatal(err)
	}
	c.sh(t, "kubectl create deployment web --image=registry.k8s.io/pause:3.10 --replicas=3")
	c.sh(t, "kubectl wait deployment web --for=condition=Available --timeout=120s")
	t.Logf("three pods run after %v", time.Since(began).Round(100*time.Millisecond))
	c.approveServing(t)
	c.visit(t)
	c.secondScheduler(t)
	for name, pid := range map[string]int{
		"bowsprit": c.cmd.Process.Pid, "kubelet": kubelet.cmd.Process.Pid, "containerd": runtime.cmd.Process.Pid,
	} {
		t.Logf("%s: %s", name, c.sh(t, fmt.Sprintf("grep VmRSS /proc/%d/status", pid)))
	}
	await(t, func(context.Context) string {
		if file, err := c.currentCertificate(); err != nil || file == first { // it is gone while it is replaced
			return fmt.Sprintf("the kubelet's certificate has not been renewed: %s, %v", file, err)
		}
		return ""
	})
	c.sh(t, "kubectl delete deployment web --wait && kubectl wait pod --selector=app=web --for=delete --timeout=120s")
}

// visit does with a pod what kubectl can.
func (c *cluster) visit(t *testing.T) {
	t.Helper()
	pod := c.sh(t, "kubectl get pods --selector=app=web -o jsonpath='{.items[0].metadata.name}'")
	await(t, func(context.Context) string { // the kubelet takes its new certificate when it has it
		return c.sh(t, "kubectl exec "+pod+" -- true >/dev/null 2>&1 || echo exec does not work")
	})
	c.sh(t, "echo content > file")
	for _, s := range []struct{ line, want string }{
		{"kubectl exec POD -- sh -c 'echo hello from $(id -u)'", "hello from 0"},
		{"kubectl exec POD -- sh -c 'echo line > /proc/1/fd/1'", ""},
		{"for i in $(seq 100); do kubectl logs POD | grep line && break; done", "line"},
		{"kubectl cp file POD:/tmp/file && kubectl exec POD -- cat /tmp/file", "content"},
		{"kubectl cp POD:/tmp/file back >/dev/null 2>&1 && cat back", "content"},
		{"kubectl exec POD -- sh -c 'mkdir /tmp/w; echo page > /tmp/w/index.html; httpd -p 8080 -h /tmp/w'", ""},
		{"kubectl get --raw /api/v1/namespaces/default/pods/POD:8080/proxy/", "page"},
		{"kubectl get --raw /api/v1/nodes/one/proxy/healthz", "ok"},
		{"kubectl debug POD --image=registry.k8s.io/pause:3.10 -c dbg -- echo debugged >/dev/null 2>&1;" +
			"kubectl wait pod POD --timeout=120s >/dev/null " +
			"--for=jsonpath='{.status.ephemeralContainerStatuses[0].state.terminated.reason}'=Completed;" +
			"kubectl logs POD -c dbg", "debugged"},
		{"kubectl run once --image=registry.k8s.io/pause:3.10 --restart=Never --attach --quiet --" +
			" sh -c 'sleep 3; echo attached' 2>/dev/null", "attached"},
		{"kubectl port-forward pod/POD 18080:8080 > forward &\n" +
			"for i in $(seq 600); do grep -q Forwarding forward && break; sleep 0.1; done\n" +
			"busybox wget -qO- http://127.0.0.1:18080/; kill $!", "page"},
	} {
		if got := c.sh(t, strings.ReplaceAll(s.line, "POD", pod)); got != s.want {
			t.Errorf("%s: %q, want %q", s.line, got, s.want)
		}
	}
}

// secondScheduler creates what docs/schedulers.md has, and waits until all three pods run.
func (c *cluster) secondScheduler(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "schedulers.md"))
	if err != nil {
		t.Fatal(err)
	}
	c.session().WriteFiles(t, "schedulers.md", page.Blocks(string(text)))
	c.sh(t, "sed -i s,config.k8s.io/v1beta2,config.k8s.io/v1, my-scheduler.yaml")
	c.sh(t, "kubectl create -f my-scheduler.yaml && kubectl create -f pod1.yaml -f pod2.yaml -f pod3.yaml")
	c.sh(t, "kubectl wait deployment my-scheduler --namespace=kube-system --for=condition=Available --timeout=150s")
	c.sh(t, "kubectl wait pod --selector=name=multischeduler-example --for=condition=Ready --timeout=120s")
	const want = "annotation-default-scheduler default-scheduler\n" +
		"annotation-second-scheduler my-scheduler\nno-annotation default-scheduler"
	await(t, func(context.Context) string {
		got := c.sh(t, "for p in annotation-default-scheduler annotation-second-scheduler no-annotation; do "+
			"echo $p $(kubectl get events --field-selector=reason=Scheduled,involvedObject.name=$p "+
			"-o jsonpath='{.items[*].reportingComponent}'); done")
		if got != want {
			return got
		}
		return ""
	})
}
