package clientgo

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/bowsprit/bowsprit/testserver"
)

// TestExtensionProject writes the project of an extension API server, builds it, runs its test, installs it, and runs
// it with the installed service account and certificate.
func TestExtensionProject(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "bowsprit")
	do(t, "../../..", "go", "build", "-o", program, "./cmd/bowsprit")
	project := filepath.Join(dir, "ship")
	do(t, ".", program, "extension", "init", "ship", "--api=sea.example.com/v1", "--replace=../../..", "--dir="+project)
	// As in its README. go mod tidy finds all modules in this module's own graph and downloads nothing.
	do(t, project, "go", "mod", "tidy")
	do(t, project, "go", "build", "-o", "bin/", ".")
	do(t, project, "go", "vet", ".")
	do(t, project, "go", "test", "-count=1", ".")

	server := testserver.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	config, admin := server.RESTConfig(), server.Kubeconfig()
	do(t, ".", program, "extension", "install", "ship", "--api=sea.example.com/v1", "--kubeconfig="+admin)
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	// A process of this machine replaces the pods, which no node runs here.
	secret, err := client.CoreV1().Secrets("ship").Get(ctx, "ship-tls", metav1.GetOptions{})
	must(t, err)
	for name, data := range secret.Data {
		must(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	token, err := client.CoreV1().ServiceAccounts("ship").CreateToken(ctx, "ship",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	account := rest.AnonymousClientConfig(config)
	account.BearerToken = token.Status.Token
	addresses := make(chan string, 1)
	run(t, addresses, filepath.Join(project, "bin", "ship"), "--kubeconfig="+kubeconfig(t, account), "--secure-port=0",
		"--bind-address=127.0.0.1", "--tls-cert-file="+filepath.Join(dir, "tls.crt"),
		"--tls-private-key-file="+filepath.Join(dir, "tls.key"))
	var port string
	select {
	case address := <-addresses:
		port = address[strings.LastIndexByte(address, ':')+1:]
	case <-ctx.Done():
		t.Fatal("the server does not say where it is")
	}
	_, err = client.CoreV1().Services("ship").Patch(ctx, "ship", types.MergePatchType,
		[]byte(`{"spec":{"type":"ExternalName","externalName":"localhost","selector":null,"clusterIP":null,
			"clusterIPs":null}}`),
		metav1.PatchOptions{})
	must(t, err)
	d, err := dynamic.NewForConfig(config)
	must(t, err)
	services := d.Resource(schema.GroupVersionResource{
		Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices",
	})
	_, err = services.Patch(ctx, "v1.sea.example.com", types.MergePatchType,
		[]byte(`{"spec":{"service":{"port":`+port+`}}}`), metav1.PatchOptions{})
	must(t, err)
	must(t, wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		obj, err := services.Get(ctx, "v1.sea.example.com", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == "Available" && c["status"] == "True" {
				return true, nil
			}
		}
		return false, nil
	}))
	ships := d.Resource(schema.GroupVersionResource{
		Group: "sea.example.com", Version: "v1", Resource: "ships",
	}).Namespace("default")
	made, err := ships.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sea.example.com/v1", "kind": "Ship", "metadata": map[string]any{"name": "pequod"},
		"spec": map[string]any{"owner": "Ishmael"},
	}}, metav1.CreateOptions{})
	must(t, err)
	if size, _, _ := unstructured.NestedInt64(made.Object, "spec", "size"); size != 10 {
		t.Errorf("made %v", made)
	}
	// A server accepts its manifests.
	do(t, project, program, "kubectl", "--kubeconfig="+admin, "apply", "--filename=manifests/")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// do runs a command in a directory. It must succeed.
func do(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

// run runs a server until the test ends, and sends the address from its log when it is ready.
func run(t *testing.T, addresses chan<- string, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stderr = &readiness{addresses: addresses}
	must(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != 0 {
			t.Errorf("%s ended with %v", name, err)
		}
	})
}

// readiness is a log that finds the server's line about readiness.
type readiness struct {
	addresses chan<- string
	log       strings.Builder
	found     bool
}

func (r *readiness) Write(p []byte) (int, error) {
	r.log.Write(p)
	_, after, ok := strings.Cut(r.log.String(), " msg=ready url=https://")
	if address, _, whole := strings.Cut(after, " "); ok && whole && !r.found {
		r.found = true
		r.addresses <- address
	}
	return len(p), nil
}

// kubeconfig writes the configuration of a client to a file.
func kubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"it": {
			Server: config.Host, CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"it": {
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"it": {Cluster: "it", AuthInfo: "it"}},
		CurrentContext: "it",
	}, file))
	return file
}
