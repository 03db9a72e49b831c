package aggregation_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/testserver"
)

// BenchmarkProxy measures the CPU time of a proxied request, compared with a plain ReverseProxy: for an object of 5 KB,
// and a list of 500 of them. cpu-us/op is the time of the whole process, including the client and the other server,
// which alone are measured as "direct".
func BenchmarkProxy(b *testing.B) {
	one := `{"metadata":{"name":"a"},"data":"` + strings.Repeat("x", 5<<10) + `"}`
	answers := map[string]string{"get": one, "list": `{"items":[` + strings.Repeat(one+",", 499) + one + `]}`}
	other := serveBench(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/apis/"+group+"/v1" {
			_, _ = io.WriteString(w, flunders)
			return
		}
		_, _ = io.WriteString(w, answers[r.URL.Query().Get("what")])
	}))
	target, err := url.Parse(other.URL)
	if err != nil {
		b.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(other.Certificate())
	bare := serveBench(b, &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: egress.Transport((&egress.Egress{}).Dial(egress.Cluster), &tls.Config{RootCAs: roots}),
	})
	server := testserver.Start(b)
	client, err := rest.HTTPClientFor(server.RESTConfig())
	if err != nil {
		b.Fatal(err)
	}
	for path, body := range map[string]string{
		"/api/v1/namespaces/default/services": `{"metadata":{"name":"api"},"spec":{"type":"ExternalName",
			"externalName":"localhost"}}`,
		"/apis/apiregistration.k8s.io/v1/apiservices": fmt.Sprintf(`{"metadata":{"name":"v1.%s"},"spec":{"group":%[1]q,
			"version":"v1","groupPriorityMinimum":2000,"versionPriority":10,"insecureSkipTLSVerify":true,
			"service":{"namespace":"default","name":"api","port":%s}}}`, group, target.Port()),
	} {
		resp, err := client.Post(server.RESTConfig().Host+path, "application/json", strings.NewReader(body))
		if err != nil || resp.StatusCode != http.StatusCreated {
			b.Fatal(resp, err)
		}
		resp.Body.Close()
	}
	for _, name := range []string{"get", "list"} {
		for _, by := range []struct {
			name, url string
			client    *http.Client
		}{
			{"direct", other.URL, other.Client()}, {"ReverseProxy", bare.URL, bare.Client()},
			{"Bowsprit", server.RESTConfig().Host, client},
		} {
			b.Run(name+"/"+by.name, func(b *testing.B) { request(b, by.client, by.url+anyone+"?what="+name) })
		}
	}
}

func serveBench(b *testing.B, h http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	b.Cleanup(s.Close)
	return s
}

// request sends the same request repeatedly.
func request(b *testing.B, client *http.Client, url string) {
	ask := func() {
		resp, err := client.Get(url)
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || n < 5<<10 {
			b.Fatal(resp.Status, n, err)
		}
	}
	ask() // opens the connection, and runs the first check
	before := cpu(b)
	for b.Loop() {
		ask()
	}
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
}

// cpu returns the CPU time of the process.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
