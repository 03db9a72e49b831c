package verb

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/apply"
)

// fieldValidation returns the parameter, or its default: a warning for each problem.
func fieldValidation(v string) string {
	if v == "" {
		return metav1.FieldValidationWarn
	}
	return v
}

func isDryRun(values []string) bool { return len(values) > 0 }

// requestsDryRun is isDryRun for the options of admission.attributes.
func requestsDryRun(options any) bool {
	switch o := options.(type) {
	case *metav1.CreateOptions:
		return isDryRun(o.DryRun)
	case *metav1.UpdateOptions:
		return isDryRun(o.DryRun)
	case *metav1.DeleteOptions:
		return isDryRun(o.DryRun)
	}
	return false
}

// manager returns the field manager of a write: the fieldManager parameter, or the client's program name.
func manager(c *Call, param string) string { return apply.ManagerName(param, c.Agent) }
