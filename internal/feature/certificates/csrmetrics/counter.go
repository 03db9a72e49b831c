// Package csrmetrics counts the certificates that signers issue for CertificateSigningRequests, and whether they have
// the requested duration, with kube-apiserver's metric names (k8s.io/kubernetes/pkg/registry/certificates).
//
// The verbs call it for every status that they have written (verb.Config.Updated). A Counter is safe for concurrent
// use.
package csrmetrics

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

// Counter counts certificates for requests with a requested duration.
type Counter struct{ requested, honored *prometheus.CounterVec }

// New returns a counter that registry shows.
func New(registry prometheus.Registerer) *Counter {
	counter := func(name, noun string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "apiserver", Subsystem: "certificates_registry", Name: name,
			Help: "Total number of issued CSRs with a requested duration" + noun +
				", sliced by signer (only kubernetes.io signer names are specifically identified)",
		}, []string{"signerName"})
	}
	c := &Counter{counter("csr_requested_duration_total", ""),
		counter("csr_honored_duration_total", " that was honored")}
	registry.MustRegister(c.requested, c.honored)
	return c
}

// Updated counts the certificate of a CertificateSigningRequest that has it since this write of its status.
func (c *Counter) Updated(old, now catalog.Object) {
	seconds, requested := object.Map(old, "spec")["expirationSeconds"].(int64)
	issued := object.String(now, "status", "certificate")
	if !requested || issued == "" || object.String(old, "status", "certificate") != "" {
		return
	}
	signer := object.String(old, "spec", "signerName")
	if !strings.HasPrefix(signer, "kubernetes.io/") {
		signer = "other" // clients can invent names
	}
	c.requested.WithLabelValues(signer).Inc()
	want := time.Duration(seconds) * time.Second
	if got, ok := life(issued); ok && (want-got).Abs() < 5*time.Minute+want/20 { // signers backdate certificates
		c.honored.WithLabelValues(signer).Inc()
	}
}

// life returns how long the first certificate of a chain lasts. chain is PEM in base64.
func life(chain string) (time.Duration, bool) {
	rest, err := base64.StdEncoding.DecodeString(chain)
	if err != nil {
		return 0, false
	}
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return 0, false
		}
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return 0, false
		}
		return cert.NotAfter.Sub(cert.NotBefore), true
	}
}
