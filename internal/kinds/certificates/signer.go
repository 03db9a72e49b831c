package certificates

import (
	"context"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/request"
)

// LegacyUnknown is the signer of requests that named none when that was allowed.
const LegacyUnknown = "kubernetes.io/legacy-unknown"

// May reports whether a user may approve, sign or attest for a signer, or for all of its domain ("example.com/*").
func May(ctx context.Context, a authz.Authorizer, u user.Info, verb, signer string) bool {
	domain, _, _ := strings.Cut(signer, "/")
	for _, name := range []string{signer, domain + "/*"} {
		d, err := a.Authorize(ctx, u, &request.Info{
			IsResource: true, Verb: verb, APIPrefix: "apis", Group: certificatesv1.GroupName, Version: "*",
			Resource: "signers", Name: name,
		})
		if err == nil && d.Allowed() {
			return true
		}
	}
	return false
}
