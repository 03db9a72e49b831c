package operators

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// aggregated is an extension API server and the service in front of it.
type aggregated struct{ namespace, service, account string }

// launch starts the program of an aggregated server as its Deployment would: as its service account, with the given
// flags, on a local port with an EndpointSlice. flag is the name of its kubeconfig flag.
func (a aggregated) launch(ctx context.Context, t *testing.T, s *server, program, flag string, args ...string) {
	t.Helper()
	a.launchTo(ctx, t, s, nil, append([]string{program, flag}, args...))
}

// launchTo is launch with a writer for the program's output.
func (a aggregated) launchTo(ctx context.Context, t *testing.T, s *server, out *watcher, argv []string) {
	t.Helper()
	ip, port := freePort(t)
	file := a.kubeconfig(ctx, t, s)
	args := append([]string{
		argv[1] + "=" + file, "--authentication-kubeconfig=" + file, "--authorization-kubeconfig=" + file,
		"--bind-address=" + ip, "--secure-port=" + port, "--cert-dir=" + t.TempDir(),
	}, argv[2:]...)
	if out == nil {
		launch(t, nil, argv[0], args...)
	} else {
		launch(t, out, argv[0], args...)
	}
	a.point(ctx, t, s, "https", ip, port)
}

// point makes a port of the service lead to an address.
func (a aggregated) point(ctx context.Context, t *testing.T, s *server, name, ip, port string) {
	t.Helper()
	s.create(ctx, t, fmt.Sprintf(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %s, namespace: %s, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
endpoints: [{addresses: [%[3]s], conditions: {ready: true}}]
ports: [{name: %[4]q, port: %[5]s, protocol: TCP}]
`, a.service, a.namespace, ip, name, port))
}

// freePort returns an address of this machine with a free port.
func freePort(t *testing.T) (ip, port string) {
	t.Helper()
	ip = address(t)
	listener, err := net.Listen("tcp", ip+":0")
	must(t, err)
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	must(t, listener.Close())
	return ip, port
}

// address returns an address of this machine that EndpointSlices accept, not a loopback address.
func address(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	must(t, err)
	for _, one := range all {
		if ip := one.(*net.IPNet).IP.To4(); ip != nil && ip.IsGlobalUnicast() {
			return ip.String()
		}
	}
	t.Skip("this machine has no address but that of the loopback interface")
	return ""
}

// kubeconfig writes a kubeconfig with a token of the service account.
func (a aggregated) kubeconfig(ctx context.Context, t *testing.T, s *server) string {
	t.Helper()
	token, err := s.typed.CoreV1().ServiceAccounts(a.namespace).CreateToken(ctx, a.account,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: s.config.Host, CertificateAuthorityData: s.config.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(*config, file))
	return file
}

// available waits until an APIService reports that its server answers.
func (s *server) available(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	until(ctx, t, "APIService "+name, func() (bool, error) {
		obj, err := s.resource(t, "apiregistration.k8s.io/v1", "APIService", "").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		text := fmt.Sprint(obj.Object["status"])
		return strings.Contains(text, "status:True"), fmt.Errorf("status: %s", text)
	})
}

// kubectl runs the built-in kubectl and returns its output, including errors.
func (s *server) kubectl(ctx context.Context, args ...string) string {
	cmd := exec.CommandContext(ctx, filepath.Join(binaries, "bowsprit"), append([]string{"kubectl"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig)
	out, _ := cmd.CombinedOutput() // the output describes the error
	return string(out)
}

// prints waits until kubectl prints a text, and ignores other errors of the aggregated server.
func (s *server) prints(ctx context.Context, t *testing.T, want string, args ...string) {
	t.Helper()
	until(ctx, t, "kubectl "+strings.Join(args, " "), func() (bool, error) {
		got := s.kubectl(ctx, args...)
		return got == want, fmt.Errorf("it printed:\n%s", got)
	})
}
