package core

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// ClusterAddresses returns what is wrong with the addresses that a service asks for, before it is given what it lacks.
// off are the features of Kubernetes that are off.
func ClusterAddresses(obj, old object.Object, off []string) field.ErrorList {
	val := rule.NewValidation(obj, old, off)
	clusterIPs(val, object.Map(obj, "spec"), field.NewPath("spec"))
	return val.Errs
}
