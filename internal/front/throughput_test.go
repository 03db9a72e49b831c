package front

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authn"
	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/front/conn"
	"github.com/bowsprit/bowsprit/internal/request"
)

// BenchmarkServe measures a GET of 2 KiB over TLS with a client certificate, client included: the total cost of the
// chain, net/http and crypto/tls.
func BenchmarkServe(b *testing.B) {
	p, err := pki.Open(pki.Config{})
	must(b, err)
	body := make([]byte, 2<<10)
	s := newServer(b, func(w http.ResponseWriter, _ *http.Request, _ *request.Info, _ user.Info) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}, func(c *Config) {
		c.Authenticator = authn.New(authn.Config{ClientRoots: p.ClientRoots})
		c.TLS, c.NewID = p.TLSConfig(), nil
	})
	ln, err := conn.Listen(b.Context(), "127.0.0.1:0")
	must(b, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	certificate, err := tls.X509KeyPair(p.Admin())
	must(b, err)
	for name, http2 := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		b.Run(name, func(b *testing.B) {
			config := &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{certificate}}
			config.RootCAs.AppendCertsFromPEM(p.ServerCA())
			transport := &http.Transport{TLSClientConfig: config, Protocols: &http.Protocols{}, MaxIdleConnsPerHost: 16}
			transport.Protocols.SetHTTP1(!http2)
			transport.Protocols.SetHTTP2(http2)
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport}
			url := "https://" + ln.Addr().String() + "/apis/stable.example.com/v1/namespaces/default/crontabs/my-cron"
			b.ReportAllocs()
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					resp, err := client.Get(url)
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
	must(b, s.Shutdown(b.Context()))
	must(b, <-served)
}
