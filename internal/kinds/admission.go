package kinds

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/bowsprit/bowsprit/internal/admit/registration"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// admissionRules are the rules of a kind that configures admission. A write of one returns when the view shows it, so
// that the requests after it are already under the new rule.
func admissionRules[T any](defaults func(catalog.Object), check func(obj, old *T) errorList) *catalog.Strategy {
	return &catalog.Strategy{
		Default:         defaults,
		Validate:        judge(func(obj *T) errorList { return check(obj, nil) }),
		ValidateUpdate:  judgeUpdate(func(obj, old *T, _ string) errorList { return check(obj, old) }),
		VisibleOnReturn: true,
	}
}

func mutatingWebhookRules() *catalog.Strategy {
	return admissionRules(func(obj catalog.Object) { registration.DefaultWebhooks(obj, true) },
		registration.CheckMutatingWebhooks)
}

func validatingWebhookRules() *catalog.Strategy {
	return admissionRules(func(obj catalog.Object) { registration.DefaultWebhooks(obj, false) },
		registration.CheckValidatingWebhooks)
}

func validatingBindingRules() *catalog.Strategy {
	return admissionRules(registration.DefaultBinding,
		func(b, _ *admissionregistrationv1.ValidatingAdmissionPolicyBinding) errorList {
			return registration.CheckValidatingBinding(b)
		})
}

func mutatingPolicyRules() *catalog.Strategy {
	return admissionRules(registration.DefaultPolicy, registration.CheckMutatingPolicy)
}

func mutatingBindingRules() *catalog.Strategy {
	return admissionRules(registration.DefaultBinding,
		func(b, _ *admissionregistrationv1.MutatingAdmissionPolicyBinding) errorList {
			return registration.CheckMutatingBinding(b)
		})
}

func validatingPolicyRules() *catalog.Strategy {
	r := admissionRules(registration.DefaultPolicy, registration.CheckValidatingPolicy)
	r.ValidateUpdate = judgeUpdate(func(p, old *admissionregistrationv1.ValidatingAdmissionPolicy,
		subresource string) errorList {
		if subresource == "status" {
			return registration.CheckValidatingPolicyStatus(p)
		}
		return registration.CheckValidatingPolicy(p, old)
	})
	return r
}
