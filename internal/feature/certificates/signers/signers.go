// Package signers restricts the status of PodCertificateRequests: the permission for podcertificaterequests/status is
// not sufficient (k8s.io/kubernetes/pkg/registry/certificates/podcertificaterequest). Package
// feature/plugins/certificates has the checks for the other kinds of the group. It is safe for concurrent use.
package signers

import (
	"context"
	"fmt"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/kinds/certificates"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Part brings the limit of the status of PodCertificateRequests.
func Part() part.Part {
	return part.Part{Name: "status of PodCertificateRequests", Handlers: func(h *part.Host) part.Handlers {
		return part.Handlers{Limits: map[string]verb.Limit{
			"podcertificaterequests." + certificatesv1beta1.GroupName + "/status": Limit(h.Authorizer),
		}}
	}}
}

// Limit returns a limit that asks the authorizer a: only users with the permission to sign for the signer may change
// the status.
func Limit(a authz.Authorizer) verb.Limit {
	return func(ctx context.Context, c *verb.Call, obj, old object.Object) field.ErrorList {
		signer := object.String(old, "spec", "signerName")
		if c.User == nil || rule.Equivalent(obj["status"], old["status"]) ||
			certificates.May(ctx, a, c.User, "sign", signer) {
			return nil
		}
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "signerName"),
			fmt.Sprintf("User %q is not permitted to \"sign\" for signer %q", c.User.GetName(), signer))}
	}
}
