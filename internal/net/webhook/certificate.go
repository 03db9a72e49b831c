package webhook

import (
	"bytes"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bowsprit/bowsprit/internal/request"
)

// Certificates counts servers with certificates that clients no longer accept, with Kubernetes' metric names, and
// annotates the audit log (k8s.io/apiserver/pkg/util/x509metrics). It is a prometheus.Collector and safe for concurrent
// use.
type Certificates struct {
	missingSAN, sha1 prometheus.Counter
}

// NewCertificates returns counters with the name prefix "apiserver_webhooks" or similar.
func NewCertificates(prefix string) *Certificates {
	counter := func(name, noun, found string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{
			Name: prefix + "_x509_" + name,
			Help: "Counts the number of requests to servers " + noun + " in their serving certificate OR the number " +
				"of connection failures due to the " + found + " (either/or, based on the runtime environment)",
		})
	}
	return &Certificates{
		missingSAN: counter("missing_san_total", "missing SAN extension", "lack of x509 certificate SAN extension missing"),
		sha1:       counter("insecure_sha1_total", "with insecure SHA1 signatures", "insecure SHA1 signatures"),
	}
}

// Describe implements prometheus.Collector.
func (c *Certificates) Describe(ch chan<- *prometheus.Desc) {
	c.missingSAN.Describe(ch)
	c.sha1.Describe(ch)
}

// Collect implements prometheus.Collector.
func (c *Certificates) Collect(ch chan<- prometheus.Metric) {
	c.missingSAN.Collect(ch)
	c.sha1.Collect(ch)
}

// Failed checks whether a request to host failed because of such a certificate. ctx is the context of the client's
// request. c may be nil.
func (c *Certificates) Failed(ctx context.Context, host string, err error) {
	if c == nil {
		return
	}
	if named := (x509.HostnameError{}); errors.As(err, &named) &&
		strings.Contains(err.Error(), "x509: certificate relies on legacy Common Name field") {
		c.count(ctx, c.missingSAN, "missing-san", host, legacyName)
	}
	unknown := x509.UnknownAuthorityError{}
	if !errors.As(err, &unknown) {
		return
	}
	const insecure = "x509: cannot verify signature: insecure algorithm"
	if _, algorithm, ok := strings.Cut(err.Error(), insecure); ok && strings.Contains(algorithm, "SHA1") {
		c.count(ctx, c.sha1, "insecure-sha1", host, weakSignature)
	}
}

// Answered checks whether a server that answered has such certificates. c may be nil.
func (c *Certificates) Answered(ctx context.Context, host string, certificates []*x509.Certificate) {
	if c == nil || len(certificates) == 0 {
		return
	}
	if !slices.ContainsFunc(certificates[0].Extensions, isSAN) {
		c.count(ctx, c.missingSAN, "missing-san", host, legacyName)
	}
	if slices.ContainsFunc(certificates, signedWithSHA1) {
		c.count(ctx, c.sha1, "insecure-sha1", host, weakSignature)
	}
}

const (
	legacyName    = "relies on a legacy Common Name field instead of the SAN extension for subject validation"
	weakSignature = "uses an insecure SHA-1 signature"
)

func (c *Certificates) count(ctx context.Context, counter prometheus.Counter, id, host, reason string) {
	counter.Inc()
	if record := request.RecordOf(ctx); record != nil && host != "" {
		record.Annotate(id+".invalid-cert.kubernetes.io/"+host, reason)
	}
}

func isSAN(e pkix.Extension) bool { return e.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 17}) }

// signedWithSHA1 reports whether the certificate has a SHA-1 signature of another certificate: self-signatures of roots
// do not matter.
func signedWithSHA1(c *x509.Certificate) bool {
	weak := c.SignatureAlgorithm == x509.SHA1WithRSA || c.SignatureAlgorithm == x509.ECDSAWithSHA1
	return weak && !bytes.Equal(c.RawIssuer, c.RawSubject)
}
