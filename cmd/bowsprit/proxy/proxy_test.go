package proxy

import (
	"bufio"
	"context"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// apiServer answers with the user and the request, and ends a watch after one line.
func apiServer(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization")+"\n")
		if r.URL.Query().Has("watch") {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// trusted returns the cluster of a kubeconfig for a server; path begins all paths of requests.
func trusted(server *httptest.Server, path string) *clientcmdapi.Cluster {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &clientcmdapi.Cluster{Server: server.URL + path, CertificateAuthorityData: authority}
}

// kubeconfig writes one for a server, with a token.
func kubeconfig(t *testing.T, server *clientcmdapi.Cluster) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = server
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "secret"}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// run starts the command and returns its output up to the line with the address. The command must end without an error
// when the test ends.
func run(t *testing.T, args ...string) []string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	cmd := Command()
	cmd.SetArgs(args)
	cmd.SetOut(in)
	cmd.SetErr(in)
	cmd.SilenceUsage = true
	ended := make(chan error, 1) // buffered: a failed test reads nothing
	go func() {
		ended <- cmd.ExecuteContext(ctx)
		in.Close()
	}()
	var lines []string
	for text := bufio.NewScanner(out); text.Scan(); {
		lines = append(lines, text.Text())
		if strings.HasPrefix(text.Text(), "Starting to serve on ") {
			break
		}
	}
	go io.Copy(io.Discard, out)
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("proxy %q ended with %v", args, err)
		}
	})
	return lines
}

// address returns the address in the last line.
func address(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.TrimPrefix(lines[len(lines)-1], "Starting to serve on ")
}

// TestProxy checks the paths that the proxy forwards, and the requests that its filter refuses.
func TestProxy(t *testing.T) {
	file := kubeconfig(t, trusted(apiServer(t), ""))
	www := t.TempDir()
	if err := os.WriteFile(filepath.Join(www, "page.txt"), []byte("page\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const forbidden, notFound = "403 Forbidden\n", "404 404 page not found\n"
	for _, c := range []struct{ name, args, request, host, want string }{
		{"path", "", "GET /api/v1/pods", "", "200 GET /api/v1/pods Bearer secret\n"},
		{"write", "", "DELETE /api/v1/pods", "", "200 DELETE /api/v1/pods Bearer secret\n"},
		{"name of another site", "", "GET /api", "example.com", "403 " + refusedHost + "\n"},
		{"name that is let in", "--accept-hosts=^ex", "GET /api", "example.com:80", "200 GET /api Bearer secret\n"},
		{"commands in pods", "", "POST /api/v1/namespaces/a/pods/b/exec", "", forbidden},
		{"path that is refused", "--reject-paths=^/api/v1/secrets", "GET /api/v1/secrets", "", forbidden},
		{"path that is not let in", "--accept-paths=^/apis/", "GET /api/v1/secrets", "", forbidden},
		{"method that is refused", "--reject-methods=POST,DELETE", "DELETE /api", "", forbidden},
		{"no filter", "--disable-filter", "GET /api", "example.com", "200 GET /api Bearer secret\n"},
		{"prefix", "--api-prefix=/k8s", "GET /k8s/api/v1", "", "200 GET /api/v1 Bearer secret\n"},
		{"not below the prefix", "--api-prefix=/k8s/", "GET /api/v1", "", notFound},
		{"file", "--www=" + www, "GET /static/page.txt", "", "200 page\n"},
		{"file below a prefix", "--www=" + www + " --www-prefix=/my", "GET /my/page.txt", "", "200 page\n"},
		{"no files", "", "GET /static/page.txt", "", "200 GET /static/page.txt Bearer secret\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := address(run(t, append(strings.Fields(c.args), "--port=0", "--kubeconfig="+file)...))
			if got := ask(t, http.DefaultTransport, "http://"+at, c.request, c.host); got != c.want {
				t.Errorf("%s:\n got %q\nwant %q", c.request, got, c.want)
			}
		})
	}
}

// ask sends a request, "method path", and returns the code and the body.
func ask(t *testing.T, transport http.RoundTripper, base, request, host string) string {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Status[:3] + " " + string(body)
}

// TestServerPath checks a kubeconfig whose server has a path. Without --append-server-path the command warns the user.
func TestServerPath(t *testing.T) {
	file := kubeconfig(t, trusted(apiServer(t), "/clusters/one"))
	lines := run(t, "--port=0", "--kubeconfig="+file)
	if len(lines) != 3 || !strings.Contains(lines[1], "has the path /clusters/one, which requests do not get without "+
		"--append-server-path") {
		t.Errorf("it said %q", lines)
	}
	at := address(run(t, "--port=0", "--kubeconfig="+file, "--append-server-path"))
	want := "200 GET /clusters/one/api Bearer secret\n"
	if got := ask(t, http.DefaultTransport, "http://"+at, "GET /api", ""); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestUnixSocket checks that only the user may open a Unix socket, that it replaces the socket of a killed process, and
// that the command removes it at its end.
func TestUnixSocket(t *testing.T) {
	file, path := kubeconfig(t, trusted(apiServer(t), "")), filepath.Join(t.TempDir(), "s")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	left.Close()
	t.Run("served", func(t *testing.T) {
		if at := address(run(t, "--unix-socket="+path, "--kubeconfig="+file)); at != path {
			t.Fatalf("it serves on %q", at)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		transport := &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", path)
			},
		}
		if got := ask(t, transport, "http://localhost", "GET /api", ""); got != "200 GET /api Bearer secret\n" {
			t.Errorf("got %q", got)
		}
	})
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// TestStopsWhileWatched checks that a signal ends the command while a client watches; run checks the result of the
// command.
func TestStopsWhileWatched(t *testing.T) {
	at := address(run(t, "--port=0", "--kubeconfig="+kubeconfig(t, trusted(apiServer(t), ""))))
	resp, err := http.Get("http://" + at + "/api/v1/pods?watch=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() }) // before the command's end would be no watch any more
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
}

// TestMistakes checks that a mistake ends with one line that gives a remedy.
func TestMistakes(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	_, port, _ := net.SplitHostPort(busy.Addr().String())
	file := kubeconfig(t, &clientcmdapi.Cluster{
		Server: "https://192.0.2.1:6443", ProxyURL: "http://user:word@proxy.example:3128",
	})
	for args, want := range map[string]string{
		"now":                            `takes no arguments, but got "now"`,
		"--www-prefix=static":            `--www-prefix "static" is not a path: it must begin with /`,
		"--api-prefix=":                  `--api-prefix "" is not a path: it must begin with /`,
		"--www=/nowhere":                 "--www: stat /nowhere: no such file or directory",
		"--www=" + file:                  "--www " + file + " is not a directory",
		"--www=/ --www-prefix=/":         "--www-prefix and --api-prefix are both /: change one of them",
		"--port=70000":                   "--port 70000 is not a port: use 1 to 65535, or 0 for a free one",
		"--port=" + port:                 "127.0.0.1:" + port + " is in use by another process: stop it, or choose another",
		"--unix-socket=/x --port=1":      "--unix-socket and --port are mutually exclusive: set one of them",
		"--unix-socket=/nowhere/s":       "--unix-socket: listen unix /nowhere/s: ",
		"--accept-hosts=(":               `--accept-hosts "(": error parsing regexp`,
		"--port=0 --socks5=1080":         "--socks5: 192.0.2.1:6443 is reached through the proxy http://user:xxxxx@proxy.",
		"--kubeconfig=/nowhere/file":     "/nowhere/file",
		"--kubeconfig=/a --data-dir=/b ": "--kubeconfig and --data-dir both name a server",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // ends a command that serves anyway
		defer cancel()
		cmd := Command()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if !strings.Contains(args, "--kubeconfig") {
			args += " --kubeconfig=" + file
		}
		cmd.SetArgs(strings.Fields(args))
		if err := cmd.ExecuteContext(ctx); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", args, err, want)
		}
	}
}
