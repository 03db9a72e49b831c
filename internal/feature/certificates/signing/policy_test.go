package signing

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/certificates"
)

// TestCheck checks the rejections of Kubernetes' signers, with Kubernetes' texts.
func TestCheck(t *testing.T) {
	t.Parallel()
	const (
		client  = certificatesv1.KubeAPIServerClientSignerName
		kubelet = certificatesv1.KubeAPIServerClientKubeletSignerName
		serving = certificatesv1.KubeletServingSignerName
	)
	node := x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:n", Organization: []string{"system:nodes"}},
	}
	but := func(change func(r *x509.CertificateRequest)) *x509.CertificateRequest {
		r := node
		change(&r)
		return &r
	}
	named := but(func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{{10, 0, 0, 1}} })
	usages := func(u ...certificatesv1.KeyUsage) []certificatesv1.KeyUsage { return u }
	for _, test := range []struct {
		signer string
		r      *x509.CertificateRequest
		usages []certificatesv1.KeyUsage
		want   string
	}{
		{client, &x509.CertificateRequest{}, usages("client auth", "key encipherment"), ""},
		{client, &x509.CertificateRequest{}, usages("digital signature"),
			"missing required usage for client certificate: client auth"},
		{client, &x509.CertificateRequest{}, usages("client auth", "cert sign"),
			"invalid usage for client certificate: cert sign"},
		{kubelet, &node, usages("client auth", "digital signature"), ""},
		{kubelet, &node, usages("key encipherment", "client auth", "digital signature"), ""},
		{kubelet, &node, usages("client auth"),
			"usages did not match [client auth digital signature key encipherment]"},
		{kubelet, named, usages("client auth", "digital signature"), "IP subjectAltNames are not allowed"},
		{kubelet, but(func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"system:masters"} }), nil,
			"subject organization is not system:nodes"},
		{kubelet, but(func(r *x509.CertificateRequest) { r.Subject.CommonName = "eve" }), nil,
			"subject common name does not begin with system:node:"},
		{serving, named, usages("server auth", "digital signature"), ""},
		{serving, named, usages("client auth", "digital signature"),
			"usages did not match [digital signature key encipherment server auth]"},
		{serving, &node, nil, "DNS or IP subjectAltName is required"},
		{certificates.LegacyUnknown, &x509.CertificateRequest{}, usages("any"), ""},
	} {
		known, err := Check(test.signer, test.r, test.usages)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if !known || got != test.want {
			t.Errorf("%s, %s, %q: got %q, want %q", test.signer, test.r.Subject, test.usages, got, test.want)
		}
	}
	if known, _ := Check("example.com/signer", &node, nil); known {
		t.Error("another signer's request is known")
	}
}

// A certificate lasts as long as was wished, between ten minutes and a year, and not longer than the authority.
func TestTemplate(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	const year, century = 365 * 24 * time.Hour, 100 * 365 * 24 * time.Hour
	seconds := func(n int32) *int32 { return &n }
	for _, test := range []struct {
		seconds            *int32
		longest, end, want time.Duration // from now
		err                bool
	}{
		{nil, year, century, year - 5*time.Minute, false},
		{seconds(2e9), year, century, year - 5*time.Minute, false},
		{seconds(1), year, century, 10 * time.Minute, false},
		{seconds(3600), year, century, time.Hour, false},
		{seconds(8 * 3600), year, century, 8*time.Hour - 5*time.Minute, false},
		{nil, time.Hour, century, time.Hour, false},
		{seconds(7200), time.Hour, century, time.Hour, false},
		{seconds(1), time.Minute, century, 10 * time.Minute, false},
		{seconds(601), time.Minute, century, time.Minute, false},
		{nil, year, time.Hour, time.Hour, false},
		{nil, year, 0, 0, true},
	} {
		c, err := Template(&x509.CertificateRequest{}, &certificatesv1.CertificateSigningRequestSpec{
			ExpirationSeconds: test.seconds,
			Usages:            []certificatesv1.KeyUsage{"s/mime", "client auth", "email protection", "signing"},
		}, Validity{Now: now, Longest: test.longest, End: now.Add(test.end)})
		if test.err {
			if err == nil {
				t.Error("signed by an authority that has ended")
			}
			continue
		}
		if err != nil || !c.NotAfter.Equal(now.Add(test.want)) || !c.NotBefore.Equal(now.Add(-5*time.Minute)) ||
			c.KeyUsage != x509.KeyUsageDigitalSignature || !slices.Equal(c.ExtKeyUsage,
			[]x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageEmailProtection}) {
			t.Errorf("want %s: got %v %v", test.want, c, err)
		}
	}
}
