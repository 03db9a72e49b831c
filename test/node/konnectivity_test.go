package node

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The images of the page's manifests.
const (
	proxyServerImage = "registry.k8s.io/kas-network-proxy/proxy-server:v0.0.32"
	proxyAgentImage  = "us.gcr.io/k8s-artifacts-prod/kas-network-proxy/proxy-agent:v0.0.16"
)

// TestKonnectivityOnNode follows Kubernetes' page "Set up Konnectivity service" on a real node, with its commands, its
// folders and its manifests: the Konnectivity server is a static pod, the agent runs in a DaemonSet. The server reaches
// the kubelet only through them. First they are upstream's programs, then ours.
func TestKonnectivityOnNode(t *testing.T) {
	root := onMachine(t, needs("openssl"), program("proxy-server", proxyServer), program("proxy-agent", proxyAgent))
	if root == "" {
		return
	}
	ownFolder(t, "/etc")
	for _, dir := range []string{"/etc/kubernetes/konnectivity-server", filepath.Join(os.Getenv(insideHome), "manifests")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const configuration = "egress-selector-configuration.yaml"
	konnectivityFile(t, configuration, "/etc/kubernetes/"+configuration, nil)
	n := startNode(t, root, joining{server: []string{"--egress-selector-config-file=/etc/kubernetes/" + configuration}})
	n.sh(t, "ln -sfn $HOME/.local/share/bowsprit/pki /etc/kubernetes/pki")
	n.approveServing(t)
	if n.reaches(t) {
		t.Fatal("the server reaches the kubelet without Konnectivity")
	}
	for _, name := range []string{"kubeconfig.sh", "konnectivity-rbac.yaml"} {
		konnectivityFile(t, name, filepath.Join(n.home, name), nil)
	}
	n.sh(t, "sh -e kubeconfig.sh > kubeconfig.log 2>&1 && kubectl apply -f konnectivity-rbac.yaml")

	n.konnectivity(t, contents{files: map[string]string{"proxy-server": filepath.Join(binaries, "proxy-server")}},
		contents{files: map[string]string{"proxy-agent": filepath.Join(binaries, "proxy-agent")}}, ":upstream")
	n.endKonnectivity(t)
	if n.reaches(t) {
		t.Error("the server reaches the kubelet after the agent is gone")
	}
	n.konnectivity(t, n.half(t, "server"), n.half(t, "agent"), ":ours")
	n.endKonnectivity(t)
	t.Log(n.sh(t, "kubectl get --raw /metrics | grep ^apiserver_egress_dialer_dial_start_total"))
}

// reaches reports whether the server gets an answer from the kubelet.
func (n *realNode) reaches(t *testing.T) bool {
	t.Helper()
	return n.sh(t, "timeout 60 kubectl get --raw /api/v1/nodes/one/proxy/healthz 2> error || cat error >&2") == "ok"
}

// half is an image with Bowsprit as one half of Konnectivity, under the name in the manifest.
func (n *realNode) half(t *testing.T, name string) contents {
	t.Helper()
	file := filepath.Join(n.home, "proxy-"+name)
	script := "#!/bin/sh\nexec /bowsprit konnectivity-" + name + ` "$@"` + "\n"
	if err := os.WriteFile(file, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return contents{files: map[string]string{
		"proxy-" + name: file, "bowsprit": filepath.Join(binaries, "bowsprit"),
	}}
}

// konnectivity runs both halves from the page's manifests, with other image tags, and runs kubectl's pod commands.
func (n *realNode) konnectivity(t *testing.T, server, agent contents, tag string) {
	t.Helper()
	here := map[string]string{"35.225.206.7": nodeAddress} // "the IP address of the control plane"
	for image, has := range map[string]contents{proxyServerImage: server, proxyAgentImage: agent} {
		name, _, _ := strings.Cut(image, ":")
		here[image] = name + tag
		n.load(t, has, name+tag)
	}
	konnectivityFile(t, "konnectivity-server.yaml", n.home+"/manifests/konnectivity-server.yaml", here)
	konnectivityFile(t, "konnectivity-agent.yaml", n.home+"/konnectivity-agent.yaml", here)
	n.sh(t, "kubectl wait pod konnectivity-server-one -n kube-system --for=create --timeout=120s")
	n.sh(t, "kubectl wait pod konnectivity-server-one -n kube-system --for=condition=Ready --timeout=120s")
	n.sh(t, "kubectl apply -f konnectivity-agent.yaml")
	n.sh(t, "kubectl rollout status daemonset konnectivity-agent -n kube-system --timeout=120s")
	await(t, func(context.Context) string {
		if !n.reaches(t) {
			return "the server does not reach the kubelet through Konnectivity"
		}
		return ""
	})
	n.sh(t, "kubectl create deployment web --image=registry.k8s.io/pause:3.10")
	n.sh(t, "kubectl wait deployment web --for=condition=Available --timeout=120s")
	n.visit(t)
}

// endKonnectivity removes both halves, and the server's socket.
func (n *realNode) endKonnectivity(t *testing.T) {
	t.Helper()
	n.sh(t, "kubectl delete deployment web && kubectl delete pod once")
	n.sh(t, "kubectl wait pod --selector=app=web --for=delete --timeout=120s")
	n.sh(t, "kubectl delete -f konnectivity-agent.yaml && rm manifests/konnectivity-server.yaml")
	n.sh(t, "kubectl wait pod konnectivity-server-one -n kube-system --for=delete --timeout=120s")
	n.sh(t, "kubectl wait pod -l k8s-app=konnectivity-agent -n kube-system --for=delete --timeout=120s")
	n.sh(t, "rm -f /etc/kubernetes/konnectivity-server/*")
}

// konnectivityFile copies a file of the page, which the tests of test/e2e use too, with replacements.
func konnectivityFile(t *testing.T, name, to string, here map[string]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "e2e", "testdata", "konnectivity", name))
	if err != nil {
		t.Fatal(err)
	}
	for word, means := range here {
		text = []byte(strings.ReplaceAll(string(text), word, means))
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
