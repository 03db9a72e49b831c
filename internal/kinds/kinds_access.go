package kinds

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// accessKinds are those of rbac.authorization.k8s.io and certificates.k8s.io.
func accessKinds() []kind {
	return []kind{
		roleKind(),
		roleBindingKind(),
		clusterRoleKind(),
		clusterRoleBindingKind(),
		certificateSigningRequestKind(),
	}
}

func roleKind() kind {
	return of[rbacv1.Role](kind{group: rbacV1, kind: "Role", plural: "roles", rules: accessRules()})
}

func roleBindingKind() kind {
	return of[rbacv1.RoleBinding](kind{
		group: rbacV1, kind: "RoleBinding", plural: "rolebindings", rules: bindingRules(printed(roleBindingCells)),
	})
}

func clusterRoleKind() kind {
	return of[rbacv1.ClusterRole](kind{
		group: rbacV1, kind: "ClusterRole", plural: "clusterroles", clusterScoped: true, rules: accessRules(),
	})
}

func clusterRoleBindingKind() kind {
	return of[rbacv1.ClusterRoleBinding](kind{
		group: rbacV1, kind: "ClusterRoleBinding", plural: "clusterrolebindings", clusterScoped: true,
		rules: bindingRules(printed(clusterRoleBindingCells)),
	})
}

func certificateSigningRequestKind() kind {
	return of[certificatesv1.CertificateSigningRequest](kind{
		group: certificatesV1, kind: "CertificateSigningRequest", plural: "certificatesigningrequests",
		short:         []string{"csr"},
		clusterScoped: true, status: true,
		subresources: []catalog.Subresource{object("CertificateSigningRequest", "approval", views...)},
		reaches: map[string]catalog.ResetFields{
			"":         except("spec", "status"),
			"status":   except("spec", "status.conditions"),
			"approval": except("spec", "status.certificate"),
		},
		rules: &catalog.Strategy{
			Cells: printed(signingRequestCells), ValidName: nameIsSegment, PrepareCreate: prepareSigningRequestCreate,
			PrepareUpdate: prepareSigningRequestUpdate, UnconditionalUpdate: true,
			FieldLabels: fields("spec.signerName"),
		},
	})
}

// accessRules are those of roles and bindings: their names may have colons.
func accessRules() *catalog.Strategy {
	return &catalog.Strategy{ValidName: nameIsSegment, UnconditionalUpdate: true, CreateOnUpdate: true}
}

func bindingRules(cells func(catalog.Object, catalog.Env) []any) *catalog.Strategy {
	r := accessRules()
	r.Default, r.Cells = defaultSubjects, cells
	return r
}
