package clients

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint/support"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ownChart is the chart by which a server runs inside of a cluster.
const ownChart = "../../packaging/chart"

// ownCases are values of the chart.
var ownCases = []struct {
	name   string
	values map[string]any
	kinds  string // kinds of the chart's objects, besides Secret, Service and NetworkPolicy
	ready  int32
}{
	{"defaults", nil, "StatefulSet", 1},
	{"no volume, settings", map[string]any{
		"persistence": map[string]any{"enabled": false}, "settings": map[string]any{"audit-log-path": "-"},
		"service": map[string]any{"type": "NodePort", "port": 443}, "podLabels": map[string]any{"tenant": "a"},
	}, "StatefulSet", 1},
	{"three servers", map[string]any{
		"replicas": 3, "priorityClassName": "system-cluster-critical",
		"etcd": map[string]any{"servers": []any{"https://a:2379", "https://b:2379"}, "secretName": "etcd"},
		"networkPolicy": map[string]any{"from": []any{map[string]any{"namespaceSelector": map[string]any{}}},
			"egress": []any{map[string]any{"ports": []any{map[string]any{"port": 2379}}}}},
		"tolerations": []any{map[string]any{"operator": "Exists"}},
	}, "Deployment PodDisruptionBudget", 3},
}

func loadOwn(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(ownChart)
	must(t, err)
	return c
}

// TestOwnChartLint lints the chart with the values of each case.
func TestOwnChartLint(t *testing.T) {
	t.Parallel()
	for _, c := range ownCases {
		result := action.NewLint().Run([]string{ownChart}, c.values)
		for _, m := range result.Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %v", c.name, m)
			}
		}
	}
}

// TestOwnChartRefuses gives the chart values that make no sense.
func TestOwnChartRefuses(t *testing.T) {
	t.Parallel()
	for want, values := range map[string]map[string]any{
		"replicas is more than 1, and etcd.servers is empty": {"replicas": 2},
		"settings.data-dir: the chart sets this itself":      {"settings": map[string]any{"data-dir": "/x"}},
	} {
		install := action.NewInstall(new(action.Configuration))
		install.ReleaseName, install.Namespace, install.DryRun, install.ClientOnly = "r", "default", true, true
		install.KubeVersion = &chartutil.KubeVersion{Version: "v1.36.3", Major: "1", Minor: "36"}
		if _, err := install.Run(loadOwn(t), values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", values, err)
		}
	}
}

// TestOwnChart installs the chart on a server that simulates nodes: it takes every object, in a dry run and in earnest,
// and the pods become ready. An upgrade keeps the keys.
func TestOwnChart(t *testing.T) {
	t.Parallel()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	program(t, "serve", "--ephemeral", "--secure-port=0", "--simulate=nodes=3", "--write-kubeconfig="+kubeconfig)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(t, err)
	config.QPS = -1
	// The strictest standard of Pod Security: the chart's pods are within it.
	_, err = builtins(t, config).CoreV1().Namespaces().Patch(bounded(t), "default", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`), metav1.PatchOptions{})
	must(t, err)
	for i, c := range ownCases {
		t.Run(c.name, func(t *testing.T) {
			ctx, h := bounded(t), newHelm(t, config)
			name := "own" + string(rune('a'+i))
			install := action.NewInstall(h.Configuration)
			install.ReleaseName, install.Namespace = name, "default"
			install.DryRun, install.DryRunOption = true, "server"
			_, err := install.RunWithContext(ctx, loadOwn(t), c.values)
			must(t, err)
			if c.ready == 3 {
				_, err := h.typed.CoreV1().Secrets("default").Create(ctx,
					&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "etcd"}}, metav1.CreateOptions{})
				must(t, err)
			}
			install = action.NewInstall(h.Configuration)
			install.ReleaseName, install.Namespace = name, "default"
			install.Wait, install.Timeout = true, limit
			made, err := install.RunWithContext(ctx, loadOwn(t), c.values)
			must(t, err)
			for _, kind := range append(strings.Fields(c.kinds), "Secret", "Service", "NetworkPolicy") {
				if !strings.Contains(made.Manifest, "\nkind: "+kind+"\n") {
					t.Errorf("no %s", kind)
				}
			}
			if n := strings.Count(made.Manifest, "\nkind: "); n != 3+len(strings.Fields(c.kinds)) {
				t.Errorf("%d objects:\n%s", n, made.Manifest)
			}
			h.ownReady(ctx, t, name+"-bowsprit", c.ready)

			before, err := h.typed.CoreV1().Secrets("default").Get(ctx, name+"-bowsprit-pki", metav1.GetOptions{})
			must(t, err)
			upgrade := action.NewUpgrade(h.Configuration)
			upgrade.Namespace = "default"
			_, err = upgrade.RunWithContext(ctx, name, loadOwn(t), c.values)
			must(t, err)
			after, err := h.typed.CoreV1().Secrets("default").Get(ctx, name+"-bowsprit-pki", metav1.GetOptions{})
			must(t, err)
			if len(before.Data) < 10 || !bytes.Equal(before.Data["ca.key"], after.Data["ca.key"]) ||
				!bytes.Equal(before.Data["tokens.csv"], after.Data["tokens.csv"]) {
				t.Errorf("an upgrade changes the keys: %d and %d", len(before.Data), len(after.Data))
			}
		})
	}
}

// ownReady checks the pods of a release against the chart's promises.
func (h *helm) ownReady(ctx context.Context, t *testing.T, name string, ready int32) {
	t.Helper()
	until(ctx, t, name+" is ready", func() (bool, error) {
		if d, err := h.typed.AppsV1().Deployments("default").Get(ctx, name, metav1.GetOptions{}); err == nil {
			return d.Status.ReadyReplicas == ready, nil
		}
		s, err := h.typed.AppsV1().StatefulSets("default").Get(ctx, name, metav1.GetOptions{})
		return err == nil && s.Status.ReadyReplicas == ready, err
	})
	pods, err := h.typed.CoreV1().Pods("default").List(ctx, metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/instance=" + strings.TrimSuffix(name, "-bowsprit"),
	})
	must(t, err)
	for i := range pods.Items {
		spec := pods.Items[i].Spec
		own := spec.Containers[0].SecurityContext
		if !*spec.SecurityContext.RunAsNonRoot || !*own.ReadOnlyRootFilesystem || *own.AllowPrivilegeEscalation ||
			own.Capabilities.Drop[0] != "ALL" || *spec.AutomountServiceAccountToken {
			t.Errorf("%s may more than it must", pods.Items[i].Name)
		}
	}
	if len(pods.Items) != int(ready) {
		t.Errorf("%d pods", len(pods.Items))
	}
}

// TestOwnChartServes runs the chart's container with the files of its Secret. It connects with the kubeconfig of that
// Secret, through the Service's name, with its certificate.
func TestOwnChartServes(t *testing.T) {
	t.Parallel()
	ctx, config := bounded(t), start(t)
	h := newHelm(t, config)
	install := action.NewInstall(h.Configuration)
	install.ReleaseName, install.Namespace = "bowsprit", "default"
	_, err := install.RunWithContext(ctx, loadOwn(t), nil)
	must(t, err)
	set, err := h.typed.AppsV1().StatefulSets("default").Get(ctx, "bowsprit", metav1.GetOptions{})
	must(t, err)
	secret, err := h.typed.CoreV1().Secrets("default").Get(ctx, "bowsprit-pki", metav1.GetOptions{})
	must(t, err)
	pki := t.TempDir()
	for name, data := range secret.Data {
		must(t, os.WriteFile(filepath.Join(pki, name), data, 0o600))
	}
	var args []string
	for _, arg := range set.Spec.Template.Spec.Containers[0].Args {
		args = append(args, strings.NewReplacer("=/pki/", "="+pki+"/", "=/data", "="+t.TempDir(),
			"=0.0.0.0", "=127.0.0.1", "=6443", "=0", "$(POD_IP)", "192.0.2.7").Replace(arg))
	}
	address := program(t, args...)
	client, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	must(t, err)
	host, isHTTPS := strings.CutPrefix(client.Host, "https://")
	if !isHTTPS || host != "bowsprit.default.svc:6443" {
		t.Errorf("the kubeconfig leads to %s", client.Host)
	}
	client.Host, client.ServerName = address, "bowsprit.default.svc"
	typed := builtins(t, client)
	made, err := typed.CoreV1().ServiceAccounts("default").Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
	must(t, err)
	token, err := typed.CoreV1().ServiceAccounts("default").CreateToken(ctx, made.Name,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	robot := rest.AnonymousClientConfig(client)
	robot.BearerToken = token.Status.Token
	review, err := builtins(t, robot).AuthenticationV1().SelfSubjectReviews().Create(ctx,
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	must(t, err)
	if review.Status.UserInfo.Username != "system:serviceaccount:default:robot" {
		t.Errorf("the token is that of %+v", review.Status.UserInfo)
	}
}

// program runs bowsprit and returns the URL at which it serves. It ends with the test.
func program(t *testing.T, args ...string) string {
	t.Helper()
	binary, err := filepath.EvalSymlinks(filepath.Join(assets, "kubectl")) // each asset is bowsprit, by another name
	must(t, err)
	cmd := exec.Command(binary, args...)
	cmd.Args[0] = "bowsprit"
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	var output bytes.Buffer
	cmd.Stderr = &output
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("bowsprit %v: %v: %s", args, err, &output)
		}
	})
	late := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if address, found := strings.CutPrefix(lines.Text(), "Bowsprit is ready at "); found {
			return address
		}
	}
	t.Fatalf("bowsprit %v did not start: %s", args, &output)
	return ""
}
