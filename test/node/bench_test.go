package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// TestBench measures a control plane with a real node: the time from the start of its first process, with certificates
// but without data, until a pod runs; its memory with the node idle and with 100 pods; the time until 200 pods are
// ready. It measures bowsprit, and kube-apiserver with etcd, with the same kubelet, controllers, scheduler, containerd
// and certificates. "make bench-node" runs it.
func TestBench(t *testing.T) {
	if os.Getenv("NODE_BENCH") == "" {
		t.Skip("measures for minutes: make bench-node")
	}
	for _, plane := range []struct {
		name    string
		prepare []func(t *testing.T)
		start   func(t *testing.T, n *realNode) []*component
	}{
		{"bowsprit", nil, startBowsprit},
		{"kube-apiserver", []func(t *testing.T){
			needs("openssl"), program("kube-apiserver", kubeAPIServer), program("etcd", etcd),
		}, func(t *testing.T, n *realNode) []*component {
			n.publicKey(t)
			n.began = time.Now()
			return n.startKube(t, "443")
		}},
	} {
		t.Run(plane.name, func(t *testing.T) {
			root := onMachine(t, plane.prepare...)
			if root == "" {
				return
			}
			b := &bench{name: plane.name, realNode: &realNode{root: root, cluster: benchCluster(t)}}
			b.startContainerd(t)
			b.load(t, contents{command: pause}, "registry.k8s.io/pause:3.10")
			b.began = time.Now()
			b.servers = plane.start(t, b.realNode)
			b.measure(t)
		})
	}
}

type bench struct {
	*realNode
	name                   string
	admin                  *kubernetes.Clientset
	servers                []*component // with the data
	controllers, scheduler *component
}

// print prints a figure in the format that "make bench-node" parses.
func (b *bench) print(t *testing.T, name string, figure any) {
	t.Helper()
	t.Logf("bench: %-16s %-44s %v", b.name, name, figure)
}

// benchCluster creates the files that a control plane needs before its first start: authorities, certificates,
// kubeconfigs. kube-apiserver uses bowsprit's.
func benchCluster(t *testing.T) *cluster {
	t.Helper()
	sandbox(t)
	addAddress(t, serviceAddress)
	return certified(t)
}

// certified is benchCluster on a prepared machine.
func certified(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{home: os.Getenv(insideHome), port: "443", flags: serverFlags}
	c.start(t)
	for file, user := range map[string]string{
		"kube-controller-manager": "system:kube-controller-manager", "kube-scheduler": "system:kube-scheduler",
		"kubelet": "system:node:one --group=system:nodes", "admin": "admin --group=system:masters",
		"kube-proxy": "system:kube-proxy", "kubelet-client": "kube-apiserver-kubelet-client --group=system:masters",
	} {
		c.sh(t, fmt.Sprintf("bowsprit kubeconfig --server=https://127.0.0.1:443 --user %s > %s.conf", user, file))
	}
	c.stop(t)
	c.sh(t, "rm -r .local/share/bowsprit/etcd")
	return c
}

func startBowsprit(t *testing.T, n *realNode) []*component {
	t.Helper()
	return []*component{n.run(t, "bowsprit", append([]string{"serve", "--secure-port=443"}, serverFlags...)...)}
}

// publicKey writes the public half of the service accounts' key, because kube-apiserver does not read PKCS #8.
func (n *realNode) publicKey(t *testing.T) {
	t.Helper()
	n.sh(t, "openssl pkey -pubout -in .local/share/bowsprit/pki/service-account.key -out service-account.pub")
}

// startKube starts kubeadm's control plane instead of bowsprit, with the relevant flags of kubeadm.
func (n *realNode) startKube(t *testing.T, port string, more ...string) []*component {
	t.Helper()
	const pki = ".local/share/bowsprit/pki/"
	return []*component{
		n.run(t, "etcd", "--data-dir=etcd", "--snapshot-count=10000"),
		n.run(t, "kube-apiserver", append([]string{
			"--etcd-servers=http://127.0.0.1:2379", "--secure-port=" + port,
			"--advertise-address=" + nodeAddress, "--authorization-mode=Node,RBAC", "--allow-privileged",
			"--enable-admission-plugins=NodeRestriction", "--enable-bootstrap-token-auth",
			"--service-cluster-ip-range=10.0.0.0/24", "--kubelet-preferred-address-types=InternalIP",
			"--client-ca-file=" + pki + "ca.crt", "--tls-cert-file=" + pki + "apiserver.crt",
			"--tls-private-key-file=" + pki + "apiserver.key",
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=service-account.pub",
			"--service-account-signing-key-file=" + pki + "service-account.key",
		}, more...)...),
	}
}

// measure takes all measurements, starting with the start of the servers.
func (b *bench) measure(t *testing.T) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(b.home, "admin.conf"))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	if b.admin, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	b.await(t, "/readyz", func(ctx context.Context) bool {
		return b.admin.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil
	})
	b.print(t, "empty server ready after", since(b.began))
	b.controllers = b.runControllers(t, "--node-monitor-grace-period=50s")
	b.scheduler = b.runScheduler(t)
	b.writeKubeletConfig(t, "maxPods: 250\n")
	b.runKubelet(t)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	deployment.Spec.Template = template("web")
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: deployment.Spec.Template.Labels}
	b.await(t, "the Deployment", func(ctx context.Context) bool {
		_, err := b.admin.AppsV1().Deployments("default").Create(ctx, deployment, metav1.CreateOptions{})
		return err == nil
	})
	b.awaitReady(t, 1)
	b.print(t, "first pod runs after", since(b.began))

	b.scale(t, 0)
	b.settle(t)
	b.memory(t, "the node idle")
	b.scale(t, 100)
	b.settle(t)
	b.memory(t, "100 pods")
	b.scale(t, 0)
	b.settle(t)
	began, used := time.Now(), b.processors(t)
	b.scale(t, 200)
	b.print(t, "200 pods created and ready after", since(began))
	b.print(t, "processor time of the server for these", fmt.Sprintf("%.1f s", (b.processors(t)-used).Seconds()))
	b.scale(t, 0)
}

func since(began time.Time) string { return fmt.Sprintf("%.1f s", time.Since(began).Seconds()) }

// scale sets the replicas, and waits until all pods are ready, or none is left.
func (b *bench) scale(t *testing.T, replicas int) {
	t.Helper()
	deployments := b.admin.AppsV1().Deployments("default")
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := deployments.Patch(t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if replicas > 0 {
		b.awaitReady(t, replicas)
		return
	}
	b.await(t, "the end of all pods", func(ctx context.Context) bool {
		list, err := b.admin.CoreV1().Pods("default").List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil && len(list.Items) == 0
	})
}

// awaitReady waits until the Deployment reports so many ready pods. Listing all pods would add load.
func (b *bench) awaitReady(t *testing.T, want int) {
	t.Helper()
	b.await(t, fmt.Sprintf("%d pods", want), func(ctx context.Context) bool {
		d, err := b.admin.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		return err == nil && int(d.Status.ReadyReplicas) == want
	})
}

// await polls every 50 milliseconds.
func (b *bench) await(t *testing.T, desc string, is func(ctx context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !is(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			for _, p := range append(b.servers, b.controllers, b.scheduler, b.kubelet) {
				if p != nil {
					t.Logf("%s: %s", p.cmd.Path, p.log)
				}
			}
			t.Fatalf("%s: waited for in vain", desc)
		}
	}
}

// settle waits half a minute, so that processes return unused memory.
func (b *bench) settle(t *testing.T) {
	t.Helper()
	select {
	case <-time.After(30 * time.Second):
	case <-t.Context().Done():
	}
}

// memory prints the resident memory of the control plane, and its anonymous part.
func (b *bench) memory(t *testing.T, when string) {
	t.Helper()
	for _, part := range []struct {
		name      string
		processes []*component
	}{
		{"server", b.servers}, {"controllers", []*component{b.controllers}}, {"scheduler", []*component{b.scheduler}},
		{"kubelet", []*component{b.kubelet}}, {"containerd", []*component{b.runtime}},
	} {
		resident, anonymous, names := 0, 0, []string{}
		for _, p := range part.processes {
			r, a := residentMemory(t, p.cmd.Process.Pid)
			resident, anonymous = resident+r, anonymous+a
			names = append(names, fmt.Sprintf("%s %d", filepath.Base(p.cmd.Path), r/1024))
		}
		b.print(t, fmt.Sprintf("memory with %s, %s", when, part.name), fmt.Sprintf("%d MiB, %d of it not of files (%s)",
			resident/1024, anonymous/1024, strings.Join(names, ", ")))
	}
}

// residentMemory returns VmRSS and RssAnon in KiB.
func residentMemory(t *testing.T, pid int) (resident, anonymous int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		switch fields[0] {
		case "VmRSS:":
			resident, err = strconv.Atoi(fields[1])
		case "RssAnon:":
			anonymous, err = strconv.Atoi(fields[1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return resident, anonymous
}

// processors returns the CPU time of the servers.
func (b *bench) processors(t *testing.T) time.Duration {
	t.Helper()
	return processors(t, b.servers)
}

func processors(t *testing.T, processes []*component) (all time.Duration) {
	t.Helper()
	for _, p := range processes {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		for _, field := range fields[11:13] { // utime and stime, in hundredths of a second
			ticks, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			all += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return all
}
