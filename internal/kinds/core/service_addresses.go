package core

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// ClusterAddresses returns the errors in the addresses that a service requests, before its missing values are
// allocated. off are the disabled features of Kubernetes.
func ClusterAddresses(obj, old object.Object, off []string) field.ErrorList {
	val := rule.NewValidation(obj, old, off)
	clusterIPs(val, object.Map(obj, "spec"), field.NewPath("spec"))
	return val.Errs
}
