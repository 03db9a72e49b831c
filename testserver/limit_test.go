package testserver_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/testserver"
)

// BenchmarkReads reads objects of 5 KB over HTTP/2 and TLS, from this server and from a bare Go handler that writes the
// same bytes: the limit of a server on net/http. Clients run in the same process, the same for both, so cpu-us/op is
// client and server together; the excess over the limit is our share.
func BenchmarkReads(b *testing.B) {
	s := testserver.Start(b)
	client, err := rest.HTTPClientFor(s.RESTConfig())
	if err != nil {
		b.Fatal(err)
	}
	const objects = 3000
	fill(b, client, s.URL(), objects)
	for _, work := range []struct {
		name, path string
		clients    int
	}{
		{"Get", widgetsPath + "/w-000017", 16},
		{"List3000", widgetsPath, 2},
		{"Page500", widgetsPath + "?limit=500", 4},
		{"Field30of3000", widgetsPath + "?fieldSelector=spec.bucket%3Db17", 4},
	} {
		for range 2 { // so that an index exists
			if _, err := fetch(client, s.URL()+work.path); err != nil {
				b.Fatal(err)
			}
		}
		body, err := fetch(client, s.URL()+work.path)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(work.name+"/bowsprit", func(b *testing.B) { drive(b, client, s.URL()+work.path, work.clients) })
		b.Run(work.name+"/bare", func(b *testing.B) {
			url, client := bare(b, body)
			drive(b, client, url, work.clients)
		})
	}
}

const widgetsPath = "/apis/bench.example.com/v1/namespaces/default/widgets"

// fill makes a kind and objects of it.
func fill(b *testing.B, client *http.Client, url string, objects int) {
	b.Helper()
	post := func(path, body string) error {
		resp, err := client.Post(url+path, "application/json", strings.NewReader(body))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if answer, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusCreated {
			return fmt.Errorf("%s: %s", resp.Status, answer)
		}
		return nil
	}
	if err := post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.bench.example.com"},
		"spec":{"group":"bench.example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,
		"selectableFields":[{"jsonPath":".spec.bucket"}],"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{
		"bucket":{"type":"string"},"items":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"value":{"type":"string"}}}}}}}}}}]}}`); err != nil {
		b.Fatal(err)
	}
	var items bytes.Buffer
	for i := range 60 {
		fmt.Fprintf(&items, `%s{"name":"item-%03d","value":"%032d"}`, strings.Repeat(",", min(i, 1)), i, i)
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < objects; i = int(next.Add(1)) - 1 {
				if err := post(widgetsPath,
					fmt.Sprintf(
						`{"apiVersion":"bench.example.com/v1","kind":"Widget","metadata":{"name":"w-%06d"},"spec":{"bucket":"b%02d","items":[%s]}}`, i, i%100, items.Bytes())); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
}

func fetch(client *http.Client, url string) ([]byte, error) {
	resp, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return body, err
}

// drive reads url with so many clients on one connection, as client-go does.
func drive(b *testing.B, client *http.Client, url string, clients int) {
	var next, size atomic.Int64
	var workers sync.WaitGroup
	before := cpu()
	b.ResetTimer()
	for range clients {
		workers.Go(func() {
			for next.Add(1) <= int64(b.N) {
				resp, err := client.Get(url)
				if err != nil {
					b.Error(err)
					return
				}
				n, err := io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != http.StatusOK {
					b.Errorf("%s: %v", resp.Status, err)
					return
				}
				size.Store(n)
			}
		})
	}
	workers.Wait()
	b.StopTimer()
	b.SetBytes(size.Load())
	b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-us/op")
}

// cpu is the time that the process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// bare serves body at any path with only net/http until the benchmark ends.
func bare(b *testing.B, body []byte) (url string, client *http.Client) {
	b.Helper()
	return bareHandler(b, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})
}

// bareHandler serves h over HTTP/2 and TLS with only net/http until the benchmark ends.
func bareHandler(b *testing.B, h http.HandlerFunc) (url string, client *http.Client) {
	b.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bare"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		b.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, NextProtos: []string{"h2"},
		},
		Handler: h,
		HTTP2:   &http.HTTP2Config{MaxConcurrentStreams: 1000},
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(ln, "", "") }()
	b.Cleanup(func() {
		server.Close()
		<-ended
	})
	client, err = rest.HTTPClientFor(&rest.Config{
		Host: "https://" + ln.Addr().String(), TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	})
	if err != nil {
		b.Fatal(err)
	}
	return "https://" + ln.Addr().String(), client
}
