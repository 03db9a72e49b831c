package csrmetrics

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

func TestUpdated(t *testing.T) {
	t.Parallel()
	const hour = int64(3600)
	day := certificate(t, 24*time.Hour)
	for _, test := range []struct {
		name               string
		signer             string
		seconds            any
		before, after      any
		requested, honored float64
	}{
		{"as long as asked for", "kubernetes.io/kubelet-serving", 24 * hour, nil, day, 1, 1},
		{"a little longer", "kubernetes.io/kubelet-serving", 23 * hour, nil, day, 1, 1},
		{"much shorter", "kubernetes.io/kubelet-serving", 48 * hour, nil, day, 1, 0},
		{"another's signer", "example.com/mine", 24 * hour, nil, day, 1, 1},
		{"no wish", "kubernetes.io/kubelet-serving", nil, nil, day, 0, 0},
		{"it was there before", "kubernetes.io/kubelet-serving", 24 * hour, day, day, 0, 0},
		{"it is not there yet", "kubernetes.io/kubelet-serving", 24 * hour, nil, nil, 0, 0},
		{"no certificate", "kubernetes.io/kubelet-serving", 24 * hour, nil,
			base64.StdEncoding.EncodeToString([]byte("x")), 1, 0},
		{"a broken one", "kubernetes.io/kubelet-serving", 24 * hour, nil,
			base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})),
			1, 0},
		{"no base64", "kubernetes.io/kubelet-serving", 24 * hour, nil, "%", 1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			registry := prometheus.NewRegistry()
			c := New(registry)
			request := func(certificate any) catalog.Object {
				return catalog.Object{
					"spec":   catalog.Object{"signerName": test.signer, "expirationSeconds": test.seconds},
					"status": catalog.Object{"certificate": certificate},
				}
			}
			c.Updated(request(test.before), request(test.after))
			label := test.signer
			if label == "example.com/mine" {
				label = "other"
			}
			requested, honored := value(t, registry, "csr_requested_duration_total", label),
				value(t, registry, "csr_honored_duration_total", label)
			if requested != test.requested || honored != test.honored {
				t.Errorf("requested %v, honored %v; want %v, %v", requested, honored, test.requested, test.honored)
			}
		})
	}
}

// value returns the value of a counter for a signer.
func value(t *testing.T, registry *prometheus.Registry, name, signer string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "apiserver_certificates_registry_"+name && m.GetLabel()[0].GetValue() == signer {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// certificate returns a PEM chain with a certificate of the given lifetime, preceded by another block.
func certificate(t *testing.T, life time.Duration) string {
	t.Helper()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: start, NotAfter: start.Add(life)}
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	chain := append(pem.EncodeToMemory(&pem.Block{Type: "NOTE"}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	return base64.StdEncoding.EncodeToString(chain)
}
