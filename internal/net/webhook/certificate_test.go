package webhook

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bowsprit/bowsprit/internal/request"
)

// annotations records the annotations of a request.Record.
type annotations struct {
	request.Record
	byKey map[string]string
}

func (a *annotations) Annotate(key, value string) { a.byKey[key] = value }

// certificateFor returns a certificate of a name, with DNS names if there are any.
func certificateFor(t *testing.T, name string, dns ...string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: dns}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	old, current := certificateFor(t, "hook.example.com"), certificateFor(t, "hook.example.com", "hook.example.com")
	weak := &x509.Certificate{
		SignatureAlgorithm: x509.ECDSAWithSHA1, RawIssuer: []byte("a"), RawSubject: []byte("b"),
		Extensions: current.Extensions,
	}
	root := &x509.Certificate{
		SignatureAlgorithm: x509.SHA1WithRSA, RawIssuer: []byte("a"), RawSubject: []byte("a"),
		Extensions: current.Extensions,
	}
	const insecure = "x509: certificate signed by unknown authority (possibly because of \"x509: cannot verify " +
		"signature: insecure algorithm SHA1-RSA\")"
	for name, test := range map[string]struct {
		failed    error
		answered  []*x509.Certificate
		san, sha1 float64
	}{
		"fine":               {answered: []*x509.Certificate{current, root}},
		"plain HTTP":         {},
		"other failure":      {failed: errors.New("connection refused")},
		"other name":         {failed: current.VerifyHostname("other.example.com")},
		"unknown authority":  {failed: x509.UnknownAuthorityError{}},
		"common name":        {failed: fmt.Errorf("Post: %w", old.VerifyHostname("hook.example.com")), san: 1},
		"believed name":      {answered: []*x509.Certificate{old}, san: 1},
		"SHA-1":              {failed: fmt.Errorf("%s: %w", insecure, x509.UnknownAuthorityError{}), sha1: 1},
		"believed signature": {answered: []*x509.Certificate{current, weak}, sha1: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, record := NewCertificates("apiserver_webhooks"), &annotations{byKey: map[string]string{}}
			ctx := request.NewContext(context.Background(), &request.Scope{Audit: record})
			if test.failed != nil {
				c.Failed(ctx, "hook.example.com", test.failed)
			} else {
				c.Answered(ctx, "hook.example.com", test.answered)
			}
			registry := prometheus.NewRegistry()
			registry.MustRegister(c)
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]float64{}
			for _, f := range families {
				got[f.GetName()] = f.Metric[0].Counter.GetValue()
			}
			if got["apiserver_webhooks_x509_missing_san_total"] != test.san ||
				got["apiserver_webhooks_x509_insecure_sha1_total"] != test.sha1 {
				t.Errorf("%v", got)
			}
			want := map[string]string{}
			if test.san > 0 {
				want["missing-san.invalid-cert.kubernetes.io/hook.example.com"] =
					"relies on a legacy Common Name field instead of the SAN extension for subject validation"
			}
			if test.sha1 > 0 {
				want["insecure-sha1.invalid-cert.kubernetes.io/hook.example.com"] = "uses an insecure SHA-1 signature"
			}
			if !maps.Equal(record.byKey, want) {
				t.Errorf("annotations %v", record.byKey)
			}
		})
	}
}
