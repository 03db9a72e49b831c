package certificates

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// finals are the conditions that end a request for a pod's certificate.
var finals = []string{
	certificatesv1beta1.PodCertificateRequestConditionTypeIssued,
	certificatesv1beta1.PodCertificateRequestConditionTypeDenied,
	certificatesv1beta1.PodCertificateRequestConditionTypeFailed,
}

func isFinal(condition string) bool { return slices.Contains(finals, condition) }

// ended returns the condition that has ended a request; "" if none has.
func ended(s *certificatesv1beta1.PodCertificateRequestStatus) string {
	for _, name := range finals {
		if slices.ContainsFunc(s.Conditions, func(c metav1.Condition) bool {
			return c.Type == name && c.Status == metav1.ConditionTrue
		}) {
			return name
		}
	}
	return ""
}

// podRequestStatus validates an update of the status: a request is issued, denied or failed once and for all.
func podRequestStatus(val *rule.Validation) {
	now, was := rule.As[certificatesv1beta1.PodCertificateRequestStatus](val.Obj["status"]),
		rule.As[certificatesv1beta1.PodCertificateRequestStatus](val.Old["status"])
	path := field.NewPath("status")
	if podConditions(val, now.Conditions, path.Child("conditions")); len(val.Errs) > 0 {
		return
	}
	same := func(other any, detail string) {
		if !rule.Equivalent(val.Obj["status"], other) {
			val.Invalid(path, field.OmitValueType{}, detail)
		}
	}
	switch end := ended(&now); {
	case ended(&was) != "":
		same(val.Old["status"], "immutable after PodCertificateRequest is issued, denied, or failed")
	case end == "":
		same(val.Old["status"], `status is immutable unless transitioning to "Issued", "Denied", or "Failed"`)
	case end != certificatesv1beta1.PodCertificateRequestConditionTypeIssued:
		same(object.Object{"conditions": object.Map(val.Obj, "status")["conditions"]},
			"non-condition status fields must be empty when denying or failing the PodCertificateRequest")
	default:
		issued(val, &now, path)
	}
}

func podConditions(val *rule.Validation, conditions []metav1.Condition, path *field.Path) {
	known := 0
	for i, c := range conditions {
		at := path.Child(fmt.Sprintf("[%d]", i)) // Kubernetes writes conditions.[0]
		if !isFinal(c.Type) {
			val.Unsupported(at.Child("type"), c.Type, finals...)
			continue
		}
		if known++; known > 1 {
			val.Invalid(at.Child("type"), c.Type,
				`There may be at most one condition with type "Issued", "Denied", or "Failed"`)
		}
		if c.Status != metav1.ConditionTrue {
			val.Unsupported(at.Child("status"), string(c.Status), string(metav1.ConditionTrue))
		}
	}
	val.Errs = append(val.Errs, metav1validation.ValidateConditions(conditions, path)...)
}

// Limits of issued certificates: the bytes of a chain, the clock skew between signer and server, the shortest lifetime,
// and the minimum distance of the refresh from both ends.
const (
	largestChain   = 100 * 1024
	clockSkew      = 5 * time.Minute
	shortestIssued = time.Hour
	refreshMargin  = 10 * time.Minute
)

// issued validates the issued certificates, and the status fields about them.
func issued(val *rule.Validation, s *certificatesv1beta1.PodCertificateRequestStatus, path *field.Path) {
	at := path.Child("certificateChain")
	if len(s.CertificateChain) > largestChain {
		val.Add(field.TooLong(at, s.CertificateChain, largestChain))
		return
	}
	leaf, rest, wrong := leafOf(s.CertificateChain)
	if wrong != "" {
		val.Invalid(at, s.CertificateChain, wrong)
		return
	}
	leafNames(val, leaf, at)
	key, err := requestedPublicKey(object.Map(val.Old, "spec"))
	if err != nil {
		val.Add(err)
		return
	}
	if k, ok := key.(interface{ Equal(crypto.PublicKey) bool }); ok && !k.Equal(leaf.PublicKey) {
		val.Invalid(at, s.CertificateChain, "leaf certificate was not issued to the requested public key")
		return
	}
	if issuedTimes(val, s, leaf, path); len(val.Errs) > 0 {
		return
	}
	if wrong := intermediates(rest); wrong != "" {
		val.Invalid(at, s.CertificateChain, wrong)
	}
}

func leafOf(chain string) (leaf *x509.Certificate, rest []byte, wrong string) {
	block, rest := pem.Decode([]byte(chain))
	if block == nil {
		return nil, nil, "issued certificate chain must contain at least one certificate"
	}
	if block.Type != "CERTIFICATE" {
		return nil, nil, "issued certificate chain must consist entirely of CERTIFICATE PEM blocks"
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil, "leaf certificate does not parse as valid X.509"
	}
	return leaf, rest, ""
}

func leafNames(val *rule.Validation, leaf *x509.Certificate, path *field.Path) {
	for _, name := range leaf.DNSNames {
		if name == "" {
			val.Invalid(path, name, "leaf certificate should not contain empty DNSName")
		}
		if strings.Contains(name, "..") {
			val.Invalid(path, name, "leaf certificate's DNSName should not contain '..'")
		}
		if strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") {
			val.Invalid(path, name, "leaf certificate's DNSName should not start or end with '.'")
		}
	}
	for _, address := range leaf.EmailAddresses {
		if _, err := mail.ParseAddress(address); err != nil {
			val.Invalid(path, address, "leaf certificate should not contain invalid EmailAddress")
		}
	}
}

// issuedTimes adds the first error in the times of the status, or all missing ones.
func issuedTimes(
	val *rule.Validation, s *certificatesv1beta1.PodCertificateRequestStatus, leaf *x509.Certificate, path *field.Path,
) {
	before, after, refresh := path.Child("notBefore"), path.Child("notAfter"), path.Child("beginRefreshAt")
	const consistent = "must be present and consistent with the issued certificate"
	if s.NotBefore == nil {
		val.Required(before, consistent)
	}
	if s.NotAfter == nil {
		val.Required(after, consistent)
	}
	if s.BeginRefreshAt == nil {
		val.Required(refresh, "must be present and in the range [notbefore+10min, notafter-10min]")
	}
	if len(val.Errs) > 0 {
		return
	}
	seconds, _ := object.Int(object.Map(val.Obj, "spec"), "maxExpirationSeconds")
	life, off := leaf.NotAfter.Sub(leaf.NotBefore), time.Since(s.NotBefore.Time).Abs()
	switch chain := path.Child("certificateChain"); {
	case !s.NotBefore.Time.Equal(leaf.NotBefore):
		val.Invalid(before, s.NotBefore.Time, "must be set to the NotBefore time encoded in the leaf certificate")
	case off >= clockSkew:
		val.Invalid(before, s.NotBefore.Time, "must be set to within 5 minutes of kube-apiserver's current time")
	case !s.NotAfter.Time.Equal(leaf.NotAfter):
		val.Invalid(after, s.NotAfter.Time, "must be set to the NotAfter time encoded in the leaf certificate")
	case life < shortestIssued:
		val.Invalid(chain, life, "leaf certificate lifetime must be >= 1 hour")
	case life > time.Duration(seconds)*time.Second:
		val.Invalid(chain, life,
			fmt.Sprintf("leaf certificate lifetime must be <= spec.maxExpirationSeconds (%v)", seconds))
	case s.BeginRefreshAt.Time.Before(s.NotBefore.Add(refreshMargin)):
		val.Invalid(refresh, s.BeginRefreshAt.Time, "must be at least 10 minutes after status.notBefore")
	case s.BeginRefreshAt.Time.After(s.NotAfter.Add(-refreshMargin)):
		val.Invalid(refresh, s.BeginRefreshAt.Time, "must be at least 10 minutes before status.notAfter")
	}
}

// intermediates returns the errors in the certificates behind the leaf. It does not check whether they lead to an
// authority, since that depends on the relying party.
func intermediates(chain []byte) string {
	for {
		block, rest := pem.Decode(chain)
		if block == nil {
			return ""
		}
		if block.Type != "CERTIFICATE" {
			return "issued certificate chain must consist entirely of CERTFICATE PEM blocks"
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return "intermediate certificate does not parse as valid X.509"
		}
		chain = rest
	}
}
