package node

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/testing/page"
)

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
