package kinds

import (
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

func roleBindingCells(b *rbacv1.RoleBinding, e catalog.Env) []any {
	return append([]any{b.Name, b.RoleRef.Kind + "/" + b.RoleRef.Name, ago(b.CreationTimestamp, e)},
		subjectCells(b.Subjects)...)
}

func clusterRoleBindingCells(b *rbacv1.ClusterRoleBinding, e catalog.Env) []any {
	return append([]any{b.Name, b.RoleRef.Kind + "/" + b.RoleRef.Name, ago(b.CreationTimestamp, e)},
		subjectCells(b.Subjects)...)
}

// subjectCells are the users, groups and service accounts.
func subjectCells(subjects []rbacv1.Subject) []any {
	var users, groups, accounts []string
	for _, s := range subjects {
		switch s.Kind {
		case rbacv1.UserKind:
			users = append(users, s.Name)
		case rbacv1.GroupKind:
			groups = append(groups, s.Name)
		case rbacv1.ServiceAccountKind:
			accounts = append(accounts, s.Namespace+"/"+s.Name)
		}
	}
	return []any{strings.Join(users, ", "), strings.Join(groups, ", "), strings.Join(accounts, ", ")}
}

func signingRequestCells(r *certificatesv1.CertificateSigningRequest, e catalog.Env) []any {
	requested := none
	if s := r.Spec.ExpirationSeconds; s != nil {
		requested = duration.HumanDuration(time.Duration(*s) * time.Second)
	}
	return []any{r.Name, ago(r.CreationTimestamp, e), orNone(r.Spec.SignerName), r.Spec.Username, requested,
		signingState(r)}
}

func signingState(r *certificatesv1.CertificateSigningRequest) string {
	is := func(kind certificatesv1.RequestConditionType) bool {
		return slices.ContainsFunc(r.Status.Conditions,
			func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == kind })
	}
	state := "Pending"
	switch {
	case is(certificatesv1.CertificateDenied):
		state = "Denied"
	case is(certificatesv1.CertificateApproved):
		state = "Approved"
	}
	if is(certificatesv1.CertificateFailed) {
		state += ",Failed"
	}
	if len(r.Status.Certificate) > 0 {
		state += ",Issued"
	}
	return state
}

func quotaCells(q *corev1.ResourceQuota, e catalog.Env) []any {
	var requests, limits []string
	for _, name := range sortedKeys(q.Status.Hard) {
		used, hard := q.Status.Used[name], q.Status.Hard[name]
		text := fmt.Sprintf("%s: %s/%s", name, used.String(), hard.String())
		if strings.HasPrefix(string(name), "limits.") {
			limits = append(limits, text)
		} else {
			requests = append(requests, text)
		}
	}
	return []any{q.Name, strings.Join(requests, ", "), strings.Join(limits, ", "), ago(q.CreationTimestamp, e)}
}

func mutatingWebhookCells(c *admissionregistrationv1.MutatingWebhookConfiguration, e catalog.Env) []any {
	return []any{c.Name, int64(len(c.Webhooks)), ago(c.CreationTimestamp, e)}
}

func validatingWebhookCells(c *admissionregistrationv1.ValidatingWebhookConfiguration, e catalog.Env) []any {
	return []any{c.Name, int64(len(c.Webhooks)), ago(c.CreationTimestamp, e)}
}

func validatingPolicyCells(p *admissionregistrationv1.ValidatingAdmissionPolicy, e catalog.Env) []any {
	return []any{p.Name, int64(len(p.Spec.Validations)), paramKind(p.Spec.ParamKind), ago(p.CreationTimestamp, e)}
}

func mutatingPolicyCells(p *admissionregistrationv1.MutatingAdmissionPolicy, e catalog.Env) []any {
	return []any{p.Name, int64(len(p.Spec.Mutations)), paramKind(p.Spec.ParamKind), ago(p.CreationTimestamp, e)}
}

func paramKind(k *admissionregistrationv1.ParamKind) string {
	if k == nil {
		return unset
	}
	return k.APIVersion + "/" + k.Kind
}

func validatingBindingCells(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding, e catalog.Env) []any {
	return []any{b.Name, b.Spec.PolicyName, paramRef(b.Spec.ParamRef), ago(b.CreationTimestamp, e)}
}

func mutatingBindingCells(b *admissionregistrationv1.MutatingAdmissionPolicyBinding, e catalog.Env) []any {
	return []any{b.Name, b.Spec.PolicyName, paramRef(b.Spec.ParamRef), ago(b.CreationTimestamp, e)}
}

func paramRef(r *admissionregistrationv1.ParamRef) string {
	switch {
	case r == nil:
		return unset
	case r.Name != "" && r.Namespace != "":
		return r.Namespace + "/" + r.Name
	case r.Name != "":
		return "*/" + r.Name
	case r.Selector != nil:
		return r.Selector.String()
	}
	return unset
}

func componentCells(c *corev1.ComponentStatus, _ catalog.Env) []any {
	for _, condition := range c.Conditions {
		if condition.Type != corev1.ComponentHealthy {
			continue
		}
		status := "Unhealthy"
		if condition.Status == corev1.ConditionTrue {
			status = "Healthy"
		}
		return []any{c.Name, status, condition.Message, condition.Error}
	}
	return []any{c.Name, "Unknown", "", ""}
}

func flowSchemaCells(f *flowcontrolv1.FlowSchema, e catalog.Env) []any {
	method := none
	if f.Spec.DistinguisherMethod != nil {
		method = string(f.Spec.DistinguisherMethod.Type)
	}
	dangling := "?"
	for _, c := range f.Status.Conditions {
		if c.Type == flowcontrolv1.FlowSchemaConditionDangling {
			dangling = string(c.Status)
			break
		}
	}
	return []any{f.Name, f.Spec.PriorityLevelConfiguration.Name, int64(f.Spec.MatchingPrecedence), method,
		ago(f.CreationTimestamp, e), dangling}
}

// matchingPrecedence is the rank of a FlowSchema: that in which requests try them.
func matchingPrecedence(obj catalog.Object) int64 {
	n, _ := catalog.At(obj, "spec")["matchingPrecedence"].(int64)
	return n
}

func priorityLevelCells(p *flowcontrolv1.PriorityLevelConfiguration, e catalog.Env) []any {
	shares, queues, hand, length := any(none), any(none), any(none), any(none)
	if l := p.Spec.Limited; l != nil {
		shares = int64(deref(l.NominalConcurrencyShares, 0))
		if q := l.LimitResponse.Queuing; q != nil {
			queues, hand, length = int64(q.Queues), int64(q.HandSize), int64(q.QueueLengthLimit)
		}
	}
	return []any{p.Name, string(p.Spec.Type), shares, queues, hand, length, ago(p.CreationTimestamp, e)}
}

func migrationCells(m *storagemigrationv1beta1.StorageVersionMigration, _ catalog.Env) []any {
	state := "Unknown"
	for _, c := range m.Status.Conditions {
		switch storagemigrationv1beta1.MigrationConditionType(c.Type) {
		case storagemigrationv1beta1.MigrationRunning, storagemigrationv1beta1.MigrationFailed,
			storagemigrationv1beta1.MigrationSucceeded:
			if c.Status == metav1.ConditionTrue {
				state = c.Type
			}
		}
	}
	gr := schema.GroupResource{Group: m.Spec.Resource.Group, Resource: m.Spec.Resource.Resource}
	return []any{m.Name, gr.String(), state}
}
