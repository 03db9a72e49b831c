package plugin

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/request"
)

const (
	certificatesGroup = "certificates.k8s.io"
	signingRequests   = "certificatesigningrequests"
)

// signers lets only those approve and sign requests for certificates who may do so for the signer that is asked.
type signers struct{ authz authz.Authorizer }

func certificateApproval(c Config) []rule {
	s := signers{c.Authz}
	return []rule{{group: certificatesGroup, plural: signingRequests, subresource: "approval", operations: updates,
		validate: func(ctx context.Context, a *admit.Attributes) error {
			if name := catalog.Text(a.Old, "spec", "signerName"); !s.may(ctx, a.User, "approve", name) {
				return admit.Forbidden(a, fmt.Errorf("user not permitted to approve requests with signerName %q", name))
			}
			return nil
		}}}
}

func certificateSigning(c Config) []rule {
	s := signers{c.Authz}
	return []rule{{group: certificatesGroup, plural: signingRequests, subresource: "status", operations: updates,
		validate: func(ctx context.Context, a *admit.Attributes) error {
			if now, old := catalog.At(a.Object, "status"),
				catalog.At(a.Old, "status"); reflect.DeepEqual(now["certificate"], old["certificate"]) &&
				reflect.DeepEqual(catalog.Objects(now["conditions"]), catalog.Objects(old["conditions"])) {
				return nil
			}
			if name := catalog.Text(a.Old, "spec", "signerName"); !s.may(ctx, a.User, "sign", name) {
				return admit.Forbidden(a, fmt.Errorf("user not permitted to sign requests with signerName %q", name))
			}
			return nil
		}}}
}

// may asks whether who may approve or sign for a signer, or for all of its domain ("example.com/*").
func (s signers) may(ctx context.Context, who user.Info, verb, signer string) bool {
	domain, _, _ := strings.Cut(signer, "/")
	for _, name := range []string{signer, domain + "/*"} {
		d, err := s.authz.Authorize(ctx, who, &request.Info{
			IsResource: true, Verb: verb, APIPrefix: "apis", Group: certificatesGroup, Version: "*",
			Resource: "signers", Name: name,
		})
		if err == nil && d.Allowed {
			return true
		}
	}
	return false
}

// certificateSubject keeps clients from asking for a certificate of system:masters, which may do everything.
func certificateSubject(Config) []rule {
	return []rule{{group: certificatesGroup, plural: signingRequests, operations: creates,
		validate: func(_ context.Context, a *admit.Attributes) error {
			if catalog.Text(a.Object, "spec", "signerName") != certificatesv1.KubeAPIServerClientSignerName {
				return nil
			}
			groups, err := groupsAskedFor(catalog.Text(a.Object, "spec", "request"))
			if err != nil {
				return admit.Forbidden(a, fmt.Errorf("failed to parse CSR: %w", err))
			}
			if slices.Contains(groups, user.SystemPrivilegedGroup) {
				return admit.Forbidden(a,
					fmt.Errorf("use of %s signer with %s group is not allowed",
						certificatesv1.KubeAPIServerClientSignerName, user.SystemPrivilegedGroup))
			}
			return nil
		}}}
}

// groupsAskedFor returns the groups of the subject of a request, which is base64 of PEM.
func groupsAskedFor(encoded string) ([]string, error) {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	return asked.Subject.Organization, nil
}
