// Package policystatus type-checks the expressions of ValidatingAdmissionPolicies and reports errors in their status.
package policystatus

import (
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/part"
)

// controller is kube's name for the loop.
const controller = "validatingadmissionpolicy-status-controller"

// Part brings the loop.
func Part() part.Part {
	return part.Part{Name: "policy status", Loops: []part.Loop{
		{
			Name: controller, Workers: policyCheckers,
			New: func(h *part.Host) control.Reconciler { return &policyTypes{h} },
		},
	}}
}
