package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/testing/page"
)

// The addresses of the node and of the service kubernetes. Without kube-proxy, the server listens on the latter.
const (
	nodeAddress    = "192.0.2.10"
	serviceAddress = "10.96.0.1"
)

// serverFlags are the flags of a server with a node on its own machine.
var serverFlags = []string{
	"--bind-address=0.0.0.0", "--advertise-address=" + nodeAddress, ownControllers,
	"--kubelet-preferred-address-types=InternalIP",
}

// pause is the command of idle containers.
var pause = []string{"sh", "-c", "trap exit TERM INT; while :; do sleep 100000 & wait $!; done"}

// realNode is the node "one" and its server. Kubernetes' controllers and scheduler run beside the server.
type realNode struct {
	*cluster
	root             string // folder of the packages
	hostPorts        bool   // the node has iptables, for host ports of pods
	runtime, kubelet *component
	began            time.Time // when the server was started
}

// joining are the options of startNode.
type joining struct {
	server, controllers []string // more flags
	proxied             bool     // kube-proxy leads to services
}

// startNode starts the server, the controllers, the scheduler and the node, and returns when the node is ready.
func startNode(t *testing.T, root string, how joining) *realNode {
	t.Helper()
	sandbox(t)
	if !how.proxied {
		addAddress(t, serviceAddress)
	}
	n := &realNode{root: root, began: time.Now(), cluster: &cluster{
		home: os.Getenv(insideHome), port: "443", flags: append(slices.Clone(serverFlags), how.server...),
	}}
	n.start(t)
	t.Cleanup(func() { n.stop(t) })
	t.Cleanup(func() {
		if t.Failed() {
			n.report(t)
		}
	})
	n.startControllers(t, how.controllers...)
	n.startScheduler(t)
	n.startContainerd(t)
	n.load(t, contents{command: pause}, "registry.k8s.io/pause:2.0", "registry.k8s.io/pause:3.10")
	n.startKubelet(t)
	n.sh(t, "kubectl wait node one --for=create --timeout=120s")
	n.sh(t, "kubectl wait node one --for=condition=Ready --timeout=120s")
	t.Logf("the node is ready after %v", time.Since(n.began).Round(100*time.Millisecond))
	return n
}

// report logs the state of the cluster if a test has failed.
func (n *realNode) report(t *testing.T) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "kubectl get pods -A -o wide; kubectl get events -A; kubectl describe pods -A;"+
		"kubectl describe node one")
	cmd.Dir, cmd.Env = n.home, n.env()
	out, err := cmd.CombinedOutput()
	t.Logf("%s%v", out, err)
	logs := map[string]*output{"bowsprit": n.log}
	if n.runtime != nil {
		logs["containerd"] = n.runtime.log
	}
	if n.kubelet != nil {
		logs["kubelet"] = n.kubelet.log
	}
	for name, log := range logs {
		text := log.String()
		t.Logf("%s: %s", name, text[max(0, len(text)-20_000):])
	}
}

// startContainerd starts or restarts containerd.
func (n *realNode) startContainerd(t *testing.T) {
	t.Helper()
	files := map[string]string{
		"containerd.toml":     strings.NewReplacer("HOME", n.home, "ROOT", n.root).Replace(containerdConfig),
		"cni/bridge.conflist": n.networkConfig(),
	}
	for name, content := range files {
		file := filepath.Join(n.home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n.path = filepath.Join(n.home, "bin") + ":"
	for _, dir := range []string{"usr/bin", "usr/sbin", "bin"} {
		n.path += filepath.Join(n.root, dir) + ":"
	}
	n.runtime = n.run(t, filepath.Join(n.root, "usr", "bin", "containerd"), "--config=containerd.toml")
	await(t, func(context.Context) string {
		cmd := exec.Command("sh", "-c", "ctr plugins ls")
		cmd.Env = n.env()
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Sprintf("%v: %s%s", err, out, n.runtime.log)
		}
		return ""
	})
}

// load imports an image into containerd under each of the names.
func (n *realNode) load(t *testing.T, has contents, names ...string) {
	t.Helper()
	for _, name := range names {
		file := filepath.Join(t.TempDir(), "image.tar")
		image(t, file, name, filepath.Join(n.root, "bin", "busybox"), has)
		n.sh(t, "ctr images import "+file+" && rm "+file) // the conformance tests' images have gigabytes
	}
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

// networkConfig returns the configuration of the network plugins.
func (n *realNode) networkConfig() string {
	ports := ""
	if n.hostPorts {
		ports = `,
{"type": "portmap", "capabilities": {"portMappings": true}}`
	}
	return strings.NewReplacer("HOME", n.home, "PORTS", ports).Replace(bridgeConfig)
}

const bridgeConfig = `{"cniVersion": "1.0.0", "name": "bridge", "plugins": [
{"type": "bridge", "bridge": "bowsprit0", "isGateway": true, "ipam": {"type": "host-local", "dataDir": "HOME/ipam",
 "ranges": [[{"subnet": "10.88.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}PORTS]}
`

// startKubelet joins the node "one" by a bootstrap token.
func (n *realNode) startKubelet(t *testing.T) {
	t.Helper()
	n.writeKubeletConfig(t, "")
	n.sh(t, `
kubectl config --kubeconfig=bootstrap.conf set-cluster this --server=https://127.0.0.1:443 \
  --certificate-authority=.local/share/bowsprit/pki/ca.crt --embed-certs
kubectl config --kubeconfig=bootstrap.conf set-credentials joining --token="$(bowsprit token create)"
kubectl config --kubeconfig=bootstrap.conf set-context joining --cluster=this --user=joining
kubectl config --kubeconfig=bootstrap.conf use-context joining`)
	n.runKubelet(t, "--bootstrap-kubeconfig=bootstrap.conf")
}

// writeKubeletConfig writes the configuration of docs/nodes.md with additions for this machine: the kubelet must not
// remove images when the disk is full, because they cannot be pulled again.
func (n *realNode) writeKubeletConfig(t *testing.T, more string) {
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
	groups := "cgroupsPerQOS: false\nenforceNodeAllocatable: []\n"
	if group := os.Getenv(insideGroup); group != "" {
		groups = "cgroupRoot: " + group + "\n"
	}
	configuration = strings.NewReplacer("/run/containerd/containerd.sock", n.home+"/containerd.sock",
		"/etc/kubernetes/pki/ca.crt", n.home+"/.local/share/bowsprit/pki/ca.crt").Replace(configuration) + `
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
evictionHard: {memory.available: 1Mi, nodefs.available: 1Mi, imagefs.available: 1Mi}
imageGCHighThresholdPercent: 100
volumePluginDir: ` + n.home + `/plugins
staticPodPath: ` + n.home + "/manifests\n" + groups + more
	if err := os.WriteFile(filepath.Join(n.home, "kubelet.yaml"), []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (n *realNode) runKubelet(t *testing.T, flags ...string) {
	t.Helper()
	n.kubelet = n.run(t, "kubelet", append(flags, n.kubeletFlags()...)...)
}

func (n *realNode) kubeletFlags() []string {
	return []string{
		"--config=kubelet.yaml", "--kubeconfig=kubelet.conf", "--cert-dir=kubelet-pki",
		"--root-dir=" + n.home + "/kubelet", "--hostname-override=one", "--node-ip=" + nodeAddress,
	}
}

// currentCertificate returns the file with the client certificate that the kubelet uses.
func (n *realNode) currentCertificate() (string, error) {
	return os.Readlink(filepath.Join(n.home, "kubelet-pki", "kubelet-client-current.pem"))
}

// approveServing approves the kubelet's request for a serving certificate, as an administrator: no controller has
// permission.
func (n *realNode) approveServing(t *testing.T) {
	t.Helper()
	client := n.client(t)
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
				n.sh(t, "kubectl certificate approve "+r.Name)
			}
			if len(r.Status.Certificate) > 0 {
				return ""
			}
		}
		return "the kubelet has no serving certificate"
	})
}
