package match

import "github.com/bowsprit/bowsprit/internal/catalog"

// IsPolicy tells whether a resource is one of the kinds of policies and their bindings. No policy is asked about them, so
// that a mistake in one can be mended.
func IsPolicy(r *catalog.Resource) bool {
	if r.Group != "admissionregistration.k8s.io" {
		return false
	}
	switch r.Kind {
	case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding":
		return true
	}
	return false
}

// IsConfiguration tells whether a resource configures admission at all. No webhook is asked about such objects; policies
// are asked about the configurations of webhooks, as in Kubernetes.
func IsConfiguration(r *catalog.Resource) bool {
	return IsPolicy(r) || r.Group == "admissionregistration.k8s.io" &&
		(r.Kind == "ValidatingWebhookConfiguration" || r.Kind == "MutatingWebhookConfiguration")
}
