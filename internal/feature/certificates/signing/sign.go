package signing

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/certificates"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// signer issues certificates for approved requests to Kubernetes' own signers, and records events on requests to
// signers that it does not have. Its keys are names.
type signer struct {
	*part.Host
	settings Settings
}

func (s *signer) Observe(ev *watchcache.Event, need func(string)) { observe(ev, need) }

func (s *signer) Reconcile(ctx context.Context, name string) error {
	r := read(s.Host, name)
	if r == nil || len(r.Status.Certificate) > 0 || !has(r, certificatesv1.CertificateApproved) ||
		has(r, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed) {
		return nil
	}
	authority := s.authority(r.Spec.SignerName)
	if authority == nil {
		return notice(ctx, s.Host, r)
	}
	req, err := certificates.ParseRequest(r.Spec.Request)
	if err != nil {
		return fmt.Errorf("unable to parse csr %q: %w", r.Name, err)
	}
	if _, err := Check(r.Spec.SignerName, req, r.Spec.Usages); err != nil {
		return update(ctx, s.Host, r, "status", func(status object.Object) {
			addCondition(status, certificatesv1.CertificateFailed, "SignerValidationFailure", err.Error())
		})
	}
	certificate, err := authority.SignRequest(req, func(end time.Time) (*x509.Certificate, error) {
		return Template(req, &r.Spec, Validity{Now: s.Now(), Longest: s.settings.Duration, End: end})
	})
	if err != nil {
		return fmt.Errorf("error auto signing csr: %w", err)
	}
	return update(ctx, s.Host, r, "status", func(status object.Object) {
		status["certificate"] = base64.StdEncoding.EncodeToString(certificate)
	})
}

// authority signs certificates: the server's own authority, or one from files.
type authority interface {
	SignRequest(r *x509.CertificateRequest, template func(end time.Time) (*x509.Certificate, error)) ([]byte, error)
}

// authority returns the authority for the signer of a name, or nil if the server does not sign for it.
func (s *signer) authority(name string) authority {
	if checks[name] == nil {
		return nil
	}
	if len(s.settings.Authorities) == 0 {
		return s.Certificates
	}
	if a, ok := s.settings.Authorities[name]; ok {
		return a
	}
	return nil
}
