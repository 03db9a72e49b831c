package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// aloneEnv turns the test's binary into one of alone: its name, a space and the target address.
const aloneEnv = "E2E_PROXY_TO"

// alone are whole programs that print their address and end when they are killed.
var alone = map[string]func(to *url.URL){"ReverseProxy": reverseProxy, "TLS": onlyTLS}

// runAlone is the main function of the test's binary if aloneEnv is set.
func runAlone(desc string) {
	name, to, _ := strings.Cut(desc, " ")
	target, err := url.Parse(to)
	if err != nil {
		panic(err)
	}
	alone[name](target)
}

// newAlone starts the test's binary as one of alone.
func newAlone(t *testing.T, name, port string) *costly {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), aloneEnv+"="+name+" https://localhost:"+port)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	address := make([]byte, 64)
	n, err := out.Read(address)
	if err != nil {
		t.Fatal(err)
	}
	return &costly{name: name, process: cmd.Process, config: &rest.Config{
		Host: strings.TrimSpace(string(address[:n])), TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}}
}

func reverseProxy(to *url.URL) {
	server := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16,
		},
	})
	server.EnableHTTP2 = true
	server.StartTLS()
	fmt.Println(server.URL)
	select {}
}

// onlyTLS decrypts and encrypts again without parsing: the least work of a proxy written with Go's TLS.
func onlyTLS(to *url.URL) {
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	config := certificate.TLS.Clone()
	certificate.Close()
	config.NextProtos = []string{"h2", "http/1.1"}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		panic(err)
	}
	fmt.Println("https://" + listener.Addr().String())
	for {
		conn, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		go pump(conn.(*tls.Conn), to.Host)
	}
}

// pump copies the data between both ends of a connection, in the protocol that its client has chosen.
func pump(client *tls.Conn, to string) {
	defer client.Close()
	if err := client.Handshake(); err != nil {
		return
	}
	chosen := client.ConnectionState().NegotiatedProtocol
	if chosen == "" {
		chosen = "http/1.1"
	}
	server, err := tls.Dial("tcp", to, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{chosen}})
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(server, client)
		server.Close()
	}()
	_, _ = io.Copy(client, server)
	server.Close()
}
