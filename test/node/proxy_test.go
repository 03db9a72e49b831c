package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// proxyPackages are nft, with which kube-proxy programs the kernel, and its libraries.
var proxyPackages = []string{
	"nftables", "libnftables1", "libnftnl11", "libmnl0", "libedit2", "libjansson4", "libgmp10", "libbsd0", "libmd0",
	"libxtables12",
}

// TestKubeProxy runs kube-proxy on the node, as its own user. Services lead to pods from the node and from pods, by
// cluster IP and by node port, to each pod of several and with session affinity. A pod reaches the API by the address
// of the service kubernetes, where no process listens.
func TestKubeProxy(t *testing.T) {
	root := onMachine(t, program("kube-proxy", kubeProxy), unpackProxy)
	if root == "" {
		return
	}
	n := startNode(t, root, joining{proxied: true})
	n.load(t, contents{files: map[string]string{"bin/kubectl": filepath.Join(binaries, "kubectl")}},
		"example.com/client:1.0")
	n.sh(t, "bowsprit kubeconfig --user system:kube-proxy > kube-proxy.conf")
	proxy := n.startProxy(t)
	t.Cleanup(func() {
		if t.Failed() {
			rules, err := n.try(context.Background(), "ip route; nft list ruleset")
			t.Logf("%s\n%s %v", proxy.log, rules, err)
		}
	})
	n.approveServing(t)
	n.sh(t, "kubectl create -f - <<END\n"+services+"END")
	n.sh(t, "kubectl wait deployment web --for=condition=Available --timeout=120s")
	n.sh(t, "kubectl wait pod client --for=condition=Ready --timeout=120s")
	field := func(path string) string { return n.sh(t, "kubectl get service web -o jsonpath='{.spec."+path+"}'") }
	address, port := field("clusterIP"), field("ports[0].nodePort")
	n.awaitAnswers(t, fmt.Sprintf(hostname, address), 3)
	n.awaitAnswers(t, fmt.Sprintf(hostname, nodeAddress+":"+port), 3)
	n.awaitAnswers(t, "kubectl exec client -- "+fmt.Sprintf(hostname, address), 3)
	n.sh(t, `kubectl patch service web -p '{"spec":{"sessionAffinity":"ClientIP"}}'`)
	n.awaitAnswers(t, fmt.Sprintf(hostname, address), 1)
	if got := n.sh(t, "kubectl exec client -- kubectl get --raw /version | grep gitVersion"); got == "" {
		t.Error("the pod does not reach the API")
	}
	n.sh(t, "kubectl scale deployment web --replicas=0")
	n.awaitAnswers(t, fmt.Sprintf(hostname, address), 0)
	if line := forbidden(proxy.log.String()); line != "" {
		t.Errorf("kube-proxy: %s", line)
	}
}

const services = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: registry.k8s.io/pause:3.10
        command: [httpd, -f, -p, "8080", -h, /etc]
        readinessProbe: {httpGet: {port: 8080, path: /hostname}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  containers: [{name: main, image: "example.com/client:1.0", command: [sleep, "100000"]}]
`

// unpackProxy is the step of preparation (see onMachine) for startProxy.
func unpackProxy(t *testing.T) {
	t.Helper()
	unpack(t, filepath.Join(machine(t), "nft"), "usr/sbin/nft", proxyPackages)
}

// startProxy runs kube-proxy with nft of the distribution, as the user of kube-proxy.conf.
func (n *realNode) startProxy(t *testing.T) *component {
	t.Helper()
	n.wrap(t, "nft", filepath.Join(n.root, "nft"), "usr/sbin/nft")
	if out, err := n.try(t.Context(), "nft list ruleset"); err != nil {
		t.Skipf("this kernel has no nftables: %v: %s", err, out)
	}
	// Without a default route the kernel evaluates no rules for cluster IPs.
	shell(t, "ip link add up0 type veth peer up1; ip link set up0 up; ip link set up1 up; "+
		"ip route add default dev up0 src "+nodeAddress)
	// Pods share a bridge: without masquerading their answers would bypass the node's network stack.
	return n.run(t, "kube-proxy", "--kubeconfig=kube-proxy.conf", "--proxy-mode=nftables", "--hostname-override=one",
		"--masquerade-all", "--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0s",
		"--conntrack-tcp-timeout-close-wait=0s")
}

// wrap makes a program of the distribution's packages, with its libraries, available in a folder.
func (n *realNode) wrap(t *testing.T, name, folder, command string) {
	t.Helper()
	var libraries []string
	for _, pattern := range []string{"usr/lib/*-linux-gnu", "lib/*-linux-gnu"} {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		libraries = append(libraries, found...)
	}
	extensions := strings.Join(libraries, "/xtables:") + "/xtables" // of iptables
	script := fmt.Sprintf("#!/bin/sh\nexport LD_LIBRARY_PATH=%s XTABLES_LIBDIR=%s\nexec %s/%s \"$@\"\n",
		strings.Join(libraries, ":"), extensions, folder, command)
	if err := os.MkdirAll(filepath.Join(n.home, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(n.home, "bin", name), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
}

// hostname requests the name of a pod from a service. The option -T of Debian's busybox cannot be used: it ends
// busybox.
const hostname = "busybox timeout 5 busybox wget -qO- http://%s/hostname"

// awaitAnswers runs a command until 30 consecutive runs return so many different answers.
func (n *realNode) awaitAnswers(t *testing.T, line string, want int) {
	t.Helper()
	await(t, func(context.Context) string {
		lines := strings.Fields(n.sh(t, "for i in $(seq 30); do "+line+" || break; done 2> error"))
		slices.Sort(lines)
		if got := slices.Compact(lines); len(got) != want {
			return fmt.Sprintf("%s: %v, want %d answers: %s", line, got, want, n.sh(t, "cat error"))
		}
		return ""
	})
}
