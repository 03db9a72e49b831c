package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// startContainerd starts it with the images that the test wants, which are made here.
func (c *cluster) startContainerd(t *testing.T, root string) *component {
	t.Helper()
	files := map[string]string{
		"containerd.toml":     strings.NewReplacer("HOME", c.home, "ROOT", root).Replace(containerdConfig),
		"cni/bridge.conflist": strings.ReplaceAll(bridgeConfig, "HOME", c.home),
	}
	for name, content := range files {
		file := filepath.Join(c.home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.path = ""
	for _, dir := range []string{"usr/bin", "usr/sbin", "bin"} {
		c.path += filepath.Join(root, dir) + ":"
	}
	p := c.run(t, filepath.Join(root, "usr", "bin", "containerd"), "--config=containerd.toml")
	await(t, func(context.Context) string {
		if _, err := os.Stat(filepath.Join(c.home, "containerd.sock")); err != nil {
			return p.log.String()
		}
		return ""
	})
	busybox := filepath.Join(root, "bin", "busybox")
	for name, more := range map[string]map[string]string{
		"registry.k8s.io/pause:2.0": nil, "registry.k8s.io/pause:3.10": nil,
		"gcr.io/my-gcp-project/my-kube-scheduler:1.0": { // the page's Dockerfile
			"usr/local/bin/kube-scheduler": filepath.Join(binaries, "kube-scheduler"),
		},
	} {
		file := filepath.Join(t.TempDir(), "image.tar")
		image(t, file, name, busybox, pause, more)
		await(t, func(context.Context) string {
			return c.sh(t, "ctr -a containerd.sock -n k8s.io images import "+file+" >/dev/null 2>&1 || echo no")
		})
	}
	return p
}

const containerdConfig = `version = 2
root = "HOME/containerd"
state = "HOME/containerd-state"
[grpc]
address = "HOME/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "registry.k8s.io/pause:3.10"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "ROOT/usr/lib/cni"
conf_dir = "HOME/cni"
`

const bridgeConfig = `{"cniVersion": "1.0.0", "name": "bridge", "plugins": [
{"type": "bridge", "bridge": "bowsprit0", "isGateway": true, "ipam": {"type": "host-local", "dataDir": "HOME/ipam",
 "ranges": [[{"subnet": "10.88.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
`

// startKubelet joins the node "one" by a bootstrap token, with the configuration of docs/nodes.md and what this
// machine wants beside it.
func (c *cluster) startKubelet(t *testing.T) *component {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "nodes.md"))
	if err != nil {
		t.Fatal(err)
	}
	configuration := ""
	for _, b := range page.Blocks(string(text)) {
		if b.Name == "kubelet.yaml" {
			configuration = b.Text
		}
	}
	configuration = strings.NewReplacer("/run/containerd/containerd.sock", c.home+"/containerd.sock",
		"/etc/kubernetes/pki/ca.crt", c.home+"/.local/share/bowsprit/pki/ca.crt").Replace(configuration) + `
failCgroupV1: false
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
cgroupDriver: cgroupfs
evictionHard: {memory.available: 1Mi, nodefs.available: 1Mi, imagefs.available: 1Mi}
volumePluginDir: ` + c.home + "/plugins\n"
	if err := os.WriteFile(filepath.Join(c.home, "kubelet.yaml"), []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	c.sh(t, `
kubectl config --kubeconfig=bootstrap.conf set-cluster this --server=https://127.0.0.1:443 \
  --certificate-authority=.local/share/bowsprit/pki/ca.crt --embed-certs
kubectl config --kubeconfig=bootstrap.conf set-credentials joining --token="$(bowsprit token create)"
kubectl config --kubeconfig=bootstrap.conf set-context joining --cluster=this --user=joining
kubectl config --kubeconfig=bootstrap.conf use-context joining`)
	return c.run(t, "kubelet", "--config=kubelet.yaml", "--bootstrap-kubeconfig=bootstrap.conf",
		"--kubeconfig=kubelet.conf", "--cert-dir=kubelet-pki", "--root-dir="+c.home+"/kubelet",
		"--hostname-override=one", "--node-ip="+nodeAddress)
}

// currentCertificate returns the file with the client certificate that the kubelet uses.
func (c *cluster) currentCertificate() (string, error) {
	return os.Readlink(filepath.Join(c.home, "kubelet-pki", "kubelet-client-current.pem"))
}

// approveServing approves the kubelet's request for a serving certificate, as an administrator does: no controller
// may.
func (c *cluster) approveServing(t *testing.T) {
	t.Helper()
	client := c.client(t)
	await(t, func(ctx context.Context) string {
		requests, err := client.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, r := range requests.Items {
			if r.Spec.SignerName != "kubernetes.io/kubelet-serving" {
				continue
			}
			if len(r.Status.Conditions) == 0 {
				c.sh(t, "kubectl certificate approve "+r.Name)
			}
			if len(r.Status.Certificate) > 0 {
				return ""
			}
		}
		return "the kubelet has no serving certificate"
	})
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
