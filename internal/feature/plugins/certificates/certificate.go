package certificates

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/kinds/certificates"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

const (
	certificatesGroup = "certificates.k8s.io"
	signingRequests   = "certificatesigningrequests"
)

// CertificateApproval requires the permission to approve for the signer, to approve or deny a request.
func CertificateApproval(c plugin.Config) []plugin.Rule {
	return []plugin.Rule{{
		Group: certificatesGroup, Plural: signingRequests, Subresource: "approval", Operations: plugin.Updates,
		Validate: func(ctx context.Context, a *admit.Attributes) error {
			name := catalog.Text(a.Old, "spec", "signerName")
			if !certificates.May(ctx, c.Authz, a.User, "approve", name) {
				return admit.Forbidden(a, fmt.Errorf("user not permitted to approve requests with signerName %q", name))
			}
			return nil
		}}}
}

// CertificateSigning requires the permission to sign for the signer, to write a request's status.
func CertificateSigning(c plugin.Config) []plugin.Rule {
	return []plugin.Rule{{
		Group: certificatesGroup, Plural: signingRequests, Subresource: "status", Operations: plugin.Updates,
		Validate: func(ctx context.Context, a *admit.Attributes) error {
			if now, old := catalog.At(a.Object, "status"),
				catalog.At(a.Old, "status"); reflect.DeepEqual(now["certificate"], old["certificate"]) &&
				reflect.DeepEqual(catalog.Objects(now["conditions"]), catalog.Objects(old["conditions"])) {
				return nil
			}
			name := catalog.Text(a.Old, "spec", "signerName")
			if !certificates.May(ctx, c.Authz, a.User, "sign", name) {
				return admit.Forbidden(a, fmt.Errorf("user not permitted to sign requests with signerName %q", name))
			}
			return nil
		}}}
}

// ClusterTrustBundleAttest requires the permission to attest for the signer of a bundle.
func ClusterTrustBundleAttest(c plugin.Config) []plugin.Rule {
	return []plugin.Rule{{
		Group: certificatesGroup, Plural: "clustertrustbundles", Operations: plugin.Writes,
		Validate: func(ctx context.Context, a *admit.Attributes) error {
			name := catalog.Text(a.Object, "spec", "signerName")
			if name == "" || a.Operation == admit.Update && onlyCollected(a.Object, a.Old) ||
				certificates.May(ctx, c.Authz, a.User, "attest", name) {
				return nil
			}
			return admit.Forbidden(a, fmt.Errorf("user not permitted to attest for signerName %q", name))
		}}}
}

// CertificateSubject rejects requests for a certificate of system:masters, which may do everything.
func CertificateSubject(plugin.Config) []plugin.Rule {
	return []plugin.Rule{{Group: certificatesGroup, Plural: signingRequests, Operations: plugin.Creates,
		Validate: func(_ context.Context, a *admit.Attributes) error {
			if catalog.Text(a.Object, "spec", "signerName") != certificatesv1.KubeAPIServerClientSignerName {
				return nil
			}
			req, err := certificates.RequestOf(a.Object)
			if err != nil {
				return admit.Forbidden(a, fmt.Errorf("failed to parse CSR: %w", err))
			}
			if slices.Contains(req.Subject.Organization, user.SystemPrivilegedGroup) {
				return admit.Forbidden(a,
					fmt.Errorf("use of %s signer with %s group is not allowed",
						certificatesv1.KubeAPIServerClientSignerName, user.SystemPrivilegedGroup))
			}
			return nil
		}}}
}

// onlyCollected reports whether an update changes only fields that the garbage collector and storage migration change.
func onlyCollected(obj, old admit.Object) bool {
	rest := func(of admit.Object) admit.Object {
		of, meta := maps.Clone(of), maps.Clone(catalog.At(of, "metadata"))
		for _, name := range []string{"ownerReferences", "finalizers", "managedFields"} {
			delete(meta, name)
		}
		of["metadata"] = meta
		return of
	}
	return rule.Equivalent(rest(obj), rest(old))
}
