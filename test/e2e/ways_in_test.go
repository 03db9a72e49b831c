package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// proxies are the programs that have a command proxy, which is to do the same in both.
var proxies = []string{"kubectl", "bowsprit"}

// TestHTTPProxyPage runs testdata/ways/http_proxy.txt, the page "Use an HTTP Proxy to Access the Kubernetes API" of
// Kubernetes' documentation, against kubectl proxy and bowsprit proxy. The page's port 8080 and address stand for the
// port and address of this run.
func TestHTTPProxyPage(t *testing.T) {
	t.Parallel()
	for _, program := range proxies {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			server := startServer(t, "--ephemeral", withoutAccounts)
			proxy := startProxy(t, server, program)
			runWay(t, server, "http_proxy", nil, map[string]string{
				"localhost:8080": proxy, "10.0.2.15:8443": strings.TrimPrefix(server.config(t).Host, "https://"),
			})
		})
	}
}

// startProxy starts the command proxy of a program on a free port and returns its address.
func startProxy(t *testing.T, server *process, program string) string {
	t.Helper()
	cmd := exec.CommandContext(bounded(t, startLimit), filepath.Join(binaries, program), "proxy", "--port=0",
		"--kubeconfig="+server.kubeconfig)
	line := firstLine(t, cmd)
	address, ok := strings.CutPrefix(line, "Starting to serve on ")
	if !ok {
		t.Fatalf("%s proxy said %q", program, line)
	}
	return address
}

// startSOCKS starts bowsprit proxy with a SOCKS5 proxy on a free port and returns the address of that.
func startSOCKS(t *testing.T, server *process) string {
	t.Helper()
	cmd := exec.CommandContext(bounded(t, startLimit), filepath.Join(binaries, "bowsprit"), "proxy", "--port=0",
		"--socks5=0", "--kubeconfig="+server.kubeconfig)
	line := firstLine(t, cmd)
	host := strings.TrimPrefix(server.config(t).Host, "https://")
	address, ok := strings.CutPrefix(line, "SOCKS5 proxy to "+host+" on ")
	if !ok {
		t.Fatalf("bowsprit proxy said %q", line)
	}
	return address
}

// firstLine starts a command, which ends with the test, and returns the first line that it prints.
func firstLine(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	return strings.TrimSpace(line)
}

// TestBrowserPaths sends a browser's requests to both proxies: the root is a page for people, everything else is JSON.
func TestBrowserPaths(t *testing.T) {
	t.Parallel()
	server := startServer(t, "--ephemeral")
	for _, program := range proxies {
		t.Run(program, func(t *testing.T) { browse(t, "http://"+startProxy(t, server, program)) })
	}
}

func browse(t *testing.T, proxy string) {
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
	for _, c := range []struct{ path, accept, contentType, contains string }{
		{"/", browser, "text/html", "<html"},
		{"/", "application/json", "application/json", `"/apis/apps/v1"`},
		{"/", "*/*", "application/json", `"paths": [`},
		{"/api", browser, "application/json", `"kind": "APIVersions"`},
		{"/api/", browser, "application/json", `"kind": "APIVersions"`},
		{"/apis", browser, "application/json", `"kind": "APIGroupList"`},
		{"/apis/", browser, "application/json", `"kind": "APIGroupList"`},
		{"/apis/apps", browser, "application/json", `"kind": "APIGroup"`},
		{"/apis/apps/v1", browser, "application/json", `"kind": "APIResourceList"`},
		{"/api/v1/namespaces", browser, "application/json", `"kind": "NamespaceList"`},
		{"/openapi/v3", browser, "application/json", `"/openapi/v3/apis/apps/v1?hash=`},
		{"/version", browser, "application/json", `"gitVersion"`},
		{"/healthz", browser, "text/plain", "ok"},
	} {
		t.Run(strings.Trim(c.path, "/")+" "+c.accept[:3], func(t *testing.T) {
			r, err := http.NewRequestWithContext(bounded(t, commandLimit), http.MethodGet, proxy+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", c.accept)
			r.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%s: %v\n%s", resp.Status, err, body)
			}
			if got := resp.Header.Get("Content-Type"); !strings.HasPrefix(got, c.contentType) {
				t.Errorf("the content type is %q, not %q", got, c.contentType)
			}
			if !strings.Contains(string(body), c.contains) {
				t.Errorf("%s is not in\n%s", c.contains, body)
			}
		})
	}
}

// TestProxyURL reaches the server with kubectl and curl through proxies of each kind, once by proxy-url in the
// kubeconfig, once by HTTPS_PROXY. For the latter the server needs a name: Go's clients never send requests for
// loopback addresses to a proxy of the environment. Only the proxy resolves the name.
func TestProxyURL(t *testing.T) {
	t.Parallel()
	const name = "kubernetes-remote-server.example"
	server := startServer(t, "--ephemeral", withoutAccounts)
	address, err := url.Parse(server.config(t).Host)
	if err != nil {
		t.Fatal(err)
	}
	authority, certificate := certify(t, "127.0.0.1", "localhost")
	hosts := map[string]string{name: address.Host}
	plain, secure := startRelay(t, nil, hosts), startRelay(t, &certificate, hosts)
	for _, c := range []struct {
		scheme      string
		relay       *relay
		environment bool
		request     string
	}{
		{"http", plain, false, "CONNECT "}, {"http", plain, true, "CONNECT "},
		{"https", secure, false, "CONNECT "}, {"https", secure, true, "CONNECT "},
		{"socks5", plain, false, "SOCKS5 "}, {"socks5", plain, true, "SOCKS5 "},
		{"socks5h", plain, true, "SOCKS5 "},
	} {
		setting := map[bool]string{false: "proxy-url", true: "HTTPS_PROXY"}[c.environment]
		t.Run(c.scheme+" "+setting, func(t *testing.T) { // one after another: the relays count
			before := len(c.relay.since(0))
			proxy := c.scheme + "://" + c.relay.Addr().String()
			file, env := remoteKubeconfig(t, server, remote{
				server: "https://" + name + ":" + address.Port(), proxy: proxy, authority: authority,
				environment: c.environment,
			}), []string(nil)
			if c.environment {
				env = []string{"HTTPS_PROXY=" + proxy}
			}
			runWay(t, &process{kubeconfig: file}, "socks5_proxy", env, nil)
			requests := c.relay.since(before)
			if len(requests) == 0 {
				t.Error("nothing went through the proxy")
			}
			for _, target := range requests {
				if target != c.request+name+":"+address.Port() {
					t.Errorf("the proxy was asked for %s", target)
				}
			}
		})
	}
	t.Run("socks5h proxy-url", func(t *testing.T) { // clients refuse it, which the page does not mention
		file := remoteKubeconfig(t, server, remote{
			server: server.config(t).Host, proxy: "socks5h://" + plain.Addr().String(),
		})
		kubectl := exec.Command(filepath.Join(binaries, "kubectl"), "--kubeconfig="+file, "get", "pods")
		out, err := kubectl.CombinedOutput()
		if err == nil || !strings.Contains(string(out), `unsupported scheme "socks5h"`) {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// TestSOCKS5Command uses the SOCKS5 proxy of bowsprit proxy: by the server's own address with proxy-url, and with
// HTTPS_PROXY by a name in its certificate for clients in a cluster. The proxy refuses other targets.
func TestSOCKS5Command(t *testing.T) {
	t.Parallel()
	server := startServer(t, "--ephemeral", withoutAccounts)
	proxy := "socks5://" + startSOCKS(t, server)
	file := remoteKubeconfig(t, server, remote{server: server.config(t).Host, proxy: proxy})
	runWay(t, &process{kubeconfig: file}, "socks5_proxy", nil, nil)

	file = remoteKubeconfig(t, server, remote{server: "https://kubernetes.default.svc", environment: true})
	runWay(t, &process{kubeconfig: file}, "socks5_proxy", []string{"HTTPS_PROXY=" + proxy}, nil)

	file = remoteKubeconfig(t, server, remote{server: "https://kubernetes.default.svc:8443", proxy: proxy})
	kubectl := exec.Command(filepath.Join(binaries, "kubectl"), "--kubeconfig="+file, "get", "pods")
	out, err := kubectl.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "connection not allowed by ruleset") {
		t.Errorf("another port: %v: %s", err, out)
	}
}

// TestSOCKS5Page runs the page "Use a SOCKS5 Proxy to Access the Kubernetes API" with a real ssh, which makes the
// tunnel that the page makes.
func TestSOCKS5Page(t *testing.T) {
	t.Parallel()
	server := startServer(t, "--ephemeral", withoutAccounts)
	tunnel := startSSH(t)
	proxy := "socks5://" + tunnel.address
	t.Run("proxy-url", func(t *testing.T) {
		file := remoteKubeconfig(t, server, remote{server: server.config(t).Host, proxy: proxy})
		runWay(t, &process{kubeconfig: file}, "socks5_proxy", nil, nil)
		tunnel.stop()
		kubectl := exec.Command(filepath.Join(binaries, "kubectl"), "--kubeconfig="+file, "get", "pods")
		out, err := kubectl.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "proxyconnect tcp") &&
			!strings.Contains(string(out), "socks connect") {
			t.Errorf("without the tunnel: %v: %s", err, out)
		}
	})
	t.Run("HTTPS_PROXY", func(t *testing.T) {
		name, err := os.Hostname()
		if err != nil {
			t.Fatal(err)
		}
		addresses, err := net.DefaultResolver.LookupHost(bounded(t, 5*time.Second), name)
		if err != nil || len(addresses) == 0 || !net.ParseIP(addresses[0]).IsLoopback() {
			t.Skipf("this machine's name, %s, is none for a loopback address here: %v %v", name, addresses, err)
		}
		tunnel := startSSH(t)
		address, err := url.Parse(server.config(t).Host)
		if err != nil {
			t.Fatal(err)
		}
		file := remoteKubeconfig(t, server, remote{server: "https://" + name + ":" + address.Port(), environment: true})
		runWay(t, &process{kubeconfig: file}, "socks5_proxy", []string{"HTTPS_PROXY=socks5://" + tunnel.address}, nil)
	})
}

// remote holds a client's settings for a remote server.
type remote struct {
	server, proxy string
	authority     []byte // of the proxy, PEM
	environment   bool   // the proxy is set there, and not in the kubeconfig
}

// remoteKubeconfig writes a kubeconfig in the page's form.
func remoteKubeconfig(t *testing.T, server *process, to remote) string {
	t.Helper()
	config := server.config(t)
	cluster := clientcmdapi.NewCluster()
	cluster.Server, cluster.TLSServerName = to.server, "localhost"
	// Clients believe a proxy that speaks TLS by the authorities of the cluster.
	cluster.CertificateAuthorityData = append(append([]byte(nil), config.CAData...), to.authority...)
	if !to.environment {
		cluster.ProxyURL = to.proxy
	}
	user := clientcmdapi.NewAuthInfo()
	user.ClientCertificateData, user.ClientKeyData = config.CertData, config.KeyData
	at := clientcmdapi.NewContext()
	at.Cluster, at.AuthInfo = "default", "default"
	file := clientcmdapi.NewConfig()
	file.Clusters["default"], file.AuthInfos["default"], file.Contexts["default"] = cluster, user, at
	file.CurrentContext = "default"
	path := filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// runWay runs a script of testdata/ways. It replaces words of the script for its commands.
func runWay(t *testing.T, server *process, name string, env []string, words map[string]string) {
	t.Helper()
	file := filepath.Join("testdata", "ways", name+".txt")
	script, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{server: server, dir: t.TempDir(), env: env, words: words}
	s.hook = startHook(t, s.dir)
	t.Cleanup(s.endBackground)
	if err := os.WriteFile(filepath.Join(s.dir, ".curlrc"), []byte("silent\nshow-error\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := s.run(t, strings.Split(strings.TrimSuffix(string(script), "\n"), "\n"))
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
