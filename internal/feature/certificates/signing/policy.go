package signing

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/certificates"
)

// Kubernetes' limits: the shortest duration, the backdating of certificates, and the duration below which there is no
// backdating.
const (
	shortest = 10 * time.Minute
	backdate = 5 * time.Minute
	short    = 8 * time.Hour
)

// checks are Kubernetes' signers, each with its requirements. An error is shown in a condition of the request.
var checks = map[string]check{
	certificatesv1.KubeAPIServerClientSignerName:        checkClient,
	certificatesv1.KubeAPIServerClientKubeletSignerName: checkKubeletClient,
	certificatesv1.KubeletServingSignerName:             checkKubeletServing,

	certificates.LegacyUnknown: func(*x509.CertificateRequest, []certificatesv1.KeyUsage) error { return nil },
}

type check func(*x509.CertificateRequest, []certificatesv1.KeyUsage) error

// Check returns the requirement of Kubernetes' signer that a request violates, or nil if the signer signs it. known is
// false for other signers.
func Check(name string, r *x509.CertificateRequest, usages []certificatesv1.KeyUsage) (known bool, err error) {
	want := checks[name]
	if want == nil {
		return false, nil
	}
	return true, want(r, usages)
}

func checkClient(_ *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	for _, u := range usages {
		switch u {
		case certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth:
		default:
			return fmt.Errorf("invalid usage for client certificate: %s", u)
		}
	}
	if !slices.Contains(usages, certificatesv1.UsageClientAuth) {
		return fmt.Errorf("missing required usage for client certificate: %s", certificatesv1.UsageClientAuth)
	}
	return nil
}

var (
	errOrganization = errors.New("subject organization is not system:nodes")
	//lint:ignore ST1005 kube's text
	errCommonName = errors.New("subject common name does not begin with system:node:")
	errNeedsName  = errors.New("DNS or IP subjectAltName is required")
	errDNS        = errors.New("DNS subjectAltNames are not allowed")
	//lint:ignore ST1005 kube's text
	errEmail = errors.New("Email subjectAltNames are not allowed")
	errIP    = errors.New("IP subjectAltNames are not allowed")
	errURI   = errors.New("URI subjectAltNames are not allowed")
)

func checkKubeletClient(r *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	switch {
	case !slices.Equal(r.Subject.Organization, []string{"system:nodes"}):
		return errOrganization
	case len(r.DNSNames) > 0:
		return errDNS
	case len(r.EmailAddresses) > 0:
		return errEmail
	case len(r.IPAddresses) > 0:
		return errIP
	case len(r.URIs) > 0:
		return errURI
	case !strings.HasPrefix(r.Subject.CommonName, "system:node:"):
		return errCommonName
	}
	return checkUsages(usages, certificatesv1.UsageClientAuth)
}

func checkKubeletServing(r *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	switch {
	case !slices.Equal(r.Subject.Organization, []string{"system:nodes"}):
		return errOrganization
	case len(r.DNSNames) == 0 && len(r.IPAddresses) == 0:
		return errNeedsName
	case len(r.EmailAddresses) > 0:
		return errEmail
	case len(r.URIs) > 0:
		return errURI
	}
	if err := checkUsages(usages, certificatesv1.UsageServerAuth); err != nil {
		return err
	}
	if !strings.HasPrefix(r.Subject.CommonName, "system:node:") {
		return errCommonName
	}
	return nil
}

// checkUsages requires digital signature and auth, and allows key encipherment, which keys other than RSA do not need.
func checkUsages(usages []certificatesv1.KeyUsage, auth certificatesv1.KeyUsage) error {
	all := []string{string(auth), string(certificatesv1.UsageDigitalSignature),
		string(certificatesv1.UsageKeyEncipherment)}
	slices.Sort(all)
	var got []string
	for _, u := range usages {
		got = append(got, string(u))
	}
	slices.Sort(got)
	got = slices.Compact(got)
	without := slices.DeleteFunc(slices.Clone(all),
		func(u string) bool { return u == string(certificatesv1.UsageKeyEncipherment) })
	if !slices.Equal(got, all) && !slices.Equal(got, without) {
		return fmt.Errorf("usages did not match %v", all)
	}
	return nil
}

// Validity determines the validity of a certificate.
type Validity struct {
	Now     time.Time
	Longest time.Duration // longest duration
	End     time.Time     // end of the authority
}

// life returns the duration of a certificate for the requested seconds; nil means no preference.
func (v Validity) life(seconds *int32) time.Duration {
	most := v.Longest
	if seconds == nil {
		return most
	}
	requested := time.Duration(*seconds) * time.Second
	switch {
	case requested > most:
		return most
	case requested < shortest:
		return shortest
	}
	return requested
}

// Template returns the certificate for a request. It takes only the subject, the alternative names and the key from the
// request.
func Template(
	r *x509.CertificateRequest, spec *certificatesv1.CertificateSigningRequestSpec, v Validity,
) (*x509.Certificate, error) {
	now, end := v.Now, v.End
	usage, extended, err := keyUsages(spec.Usages)
	if err != nil {
		return nil, err
	}
	lasts := v.life(spec.ExpirationSeconds)
	out := &x509.Certificate{
		Subject:  r.Subject,
		DNSNames: r.DNSNames, IPAddresses: r.IPAddresses, EmailAddresses: r.EmailAddresses, URIs: r.URIs,
		KeyUsage: usage, ExtKeyUsage: extended, BasicConstraintsValid: true,
		NotBefore: now.Add(-backdate), NotAfter: now.Add(lasts),
	}
	if lasts >= short {
		out.NotAfter = out.NotAfter.Add(-backdate)
	}
	if out.NotAfter.After(end) {
		out.NotAfter = end
	}
	switch {
	case !out.NotBefore.Before(end):
		return nil, fmt.Errorf("the signer has expired: NotAfter=%v", end)
	case !now.Before(end):
		return nil, fmt.Errorf("refusing to sign a certificate that expired in the past: NotAfter=%v", end)
	}
	return out, nil
}

var usageBits = map[certificatesv1.KeyUsage]x509.KeyUsage{
	certificatesv1.UsageSigning:           x509.KeyUsageDigitalSignature,
	certificatesv1.UsageDigitalSignature:  x509.KeyUsageDigitalSignature,
	certificatesv1.UsageContentCommitment: x509.KeyUsageContentCommitment,
	certificatesv1.UsageKeyEncipherment:   x509.KeyUsageKeyEncipherment,
	certificatesv1.UsageKeyAgreement:      x509.KeyUsageKeyAgreement,
	certificatesv1.UsageDataEncipherment:  x509.KeyUsageDataEncipherment,
	certificatesv1.UsageCertSign:          x509.KeyUsageCertSign,
	certificatesv1.UsageCRLSign:           x509.KeyUsageCRLSign,
	certificatesv1.UsageEncipherOnly:      x509.KeyUsageEncipherOnly,
	certificatesv1.UsageDecipherOnly:      x509.KeyUsageDecipherOnly,
}

var extendedUsages = map[certificatesv1.KeyUsage]x509.ExtKeyUsage{
	certificatesv1.UsageAny:             x509.ExtKeyUsageAny,
	certificatesv1.UsageServerAuth:      x509.ExtKeyUsageServerAuth,
	certificatesv1.UsageClientAuth:      x509.ExtKeyUsageClientAuth,
	certificatesv1.UsageCodeSigning:     x509.ExtKeyUsageCodeSigning,
	certificatesv1.UsageEmailProtection: x509.ExtKeyUsageEmailProtection,
	certificatesv1.UsageSMIME:           x509.ExtKeyUsageEmailProtection,
	certificatesv1.UsageIPsecEndSystem:  x509.ExtKeyUsageIPSECEndSystem,
	certificatesv1.UsageIPsecTunnel:     x509.ExtKeyUsageIPSECTunnel,
	certificatesv1.UsageIPsecUser:       x509.ExtKeyUsageIPSECUser,
	certificatesv1.UsageTimestamping:    x509.ExtKeyUsageTimeStamping,
	certificatesv1.UsageOCSPSigning:     x509.ExtKeyUsageOCSPSigning,
	certificatesv1.UsageMicrosoftSGC:    x509.ExtKeyUsageMicrosoftServerGatedCrypto,
	certificatesv1.UsageNetscapeSGC:     x509.ExtKeyUsageNetscapeServerGatedCrypto,
}

// keyUsages converts usages to their form in a certificate, the extended ones sorted.
func keyUsages(usages []certificatesv1.KeyUsage) (bits x509.KeyUsage, extended []x509.ExtKeyUsage, err error) {
	var unknown []certificatesv1.KeyUsage
	for _, u := range usages {
		if bit, ok := usageBits[u]; ok {
			bits |= bit
		} else if e, ok := extendedUsages[u]; ok {
			extended = append(extended, e)
		} else {
			unknown = append(unknown, u)
		}
	}
	if len(unknown) > 0 {
		return 0, nil, fmt.Errorf("unrecognized usage values: %q", unknown)
	}
	slices.Sort(extended)
	return bits, slices.Compact(extended), nil
}
