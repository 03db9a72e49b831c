package admission

import (
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

var admissionregistrationV1 = rule.Group{Name: "admissionregistration.k8s.io", Version: "v1", Priority: 16700, Rank: 15}

var admissionregistrationV1beta1 = rule.Group{
	Name: "admissionregistration.k8s.io", Version: "v1beta1", Priority: 16700, Rank: 12,
}

var admissionregistrationV1alpha1 = rule.Group{
	Name: "admissionregistration.k8s.io", Version: "v1alpha1", Priority: 16700, Rank: 9,
}
