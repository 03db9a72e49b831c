package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/testing/page"
)

// TestRealNode joins a kubelet with a bootstrap token. containerd and runc run its pods: a Deployment, the targets of
// kubectl's pod commands, and Kubernetes' page about multiple schedulers, unchanged, with the second scheduler as a
// Deployment. The test is skipped on unsupported machines.
func TestRealNode(t *testing.T) {
	root := onMachine(t)
	if root == "" {
		return
	}
	n := startNode(t, root, joining{controllers: []string{"--cluster-signing-duration=3m"}})
	n.load(t, contents{command: pause, files: map[string]string{ // the page's Dockerfile
		"usr/local/bin/kube-scheduler": filepath.Join(binaries, "kube-scheduler"),
	}}, "gcr.io/my-gcp-project/my-kube-scheduler:1.0")
	first, err := n.currentCertificate()
	if err != nil {
		t.Fatal(err)
	}
	n.sh(t, "kubectl create deployment web --image=registry.k8s.io/pause:3.10 --replicas=3")
	n.sh(t, "kubectl wait deployment web --for=condition=Available --timeout=120s")
	t.Logf("three pods run after %v", time.Since(n.began).Round(100*time.Millisecond))
	n.approveServing(t)
	n.visit(t)
	n.secondScheduler(t)
	for name, p := range map[string]*exec.Cmd{
		"bowsprit": n.cmd, "kubelet": n.kubelet.cmd, "containerd": n.runtime.cmd,
	} {
		t.Logf("%s: %s", name, n.sh(t, fmt.Sprintf("grep VmRSS /proc/%d/status", p.Process.Pid)))
	}
	await(t, func(context.Context) string {
		if file, err := n.currentCertificate(); err != nil || file == first { // it is gone while it is replaced
			return fmt.Sprintf("the kubelet's certificate has not been renewed: %s, %v", file, err)
		}
		return ""
	})
	n.sh(t, "kubectl delete deployment web --wait && kubectl wait pod --selector=app=web --for=delete --timeout=120s")
}

// visit runs kubectl's commands for a pod.
func (n *realNode) visit(t *testing.T) {
	t.Helper()
	pod := n.sh(t, "kubectl get pods --selector=app=web -o jsonpath='{.items[0].metadata.name}'")
	await(t, func(context.Context) string { // the kubelet uses its new certificate once it is issued
		return n.sh(t, "kubectl exec "+pod+" -- true >/dev/null 2>&1 || echo exec does not work")
	})
	n.sh(t, "echo content > file")
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
		if got := n.sh(t, strings.ReplaceAll(s.line, "POD", pod)); got != s.want {
			t.Errorf("%s: %q, want %q", s.line, got, s.want)
		}
	}
}

// secondScheduler creates the objects in docs/schedulers.md, and waits until all three pods run.
func (n *realNode) secondScheduler(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "schedulers.md"))
	if err != nil {
		t.Fatal(err)
	}
	n.session().WriteFiles(t, "schedulers.md", page.Blocks(string(text)))
	n.sh(t, "sed -i s,config.k8s.io/v1beta2,config.k8s.io/v1, my-scheduler.yaml")
	n.sh(t, "kubectl create -f my-scheduler.yaml && kubectl create -f pod1.yaml -f pod2.yaml -f pod3.yaml")
	n.sh(t, "kubectl wait deployment my-scheduler --namespace=kube-system --for=condition=Available --timeout=150s")
	n.sh(t, "kubectl wait pod --selector=name=multischeduler-example --for=condition=Ready --timeout=120s")
	const want = "annotation-default-scheduler default-scheduler\n" +
		"annotation-second-scheduler my-scheduler\nno-annotation default-scheduler"
	await(t, func(context.Context) string {
		got := n.sh(t, "for p in annotation-default-scheduler annotation-second-scheduler no-annotation; do "+
			"echo $p $(kubectl get events --field-selector=reason=Scheduled,involvedObject.name=$p "+
			"-o jsonpath='{.items[*].reportingComponent}'); done")
		if got != want {
			return got
		}
		return ""
	})
}
