package verb

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/apply"
)

// fieldValidation returns what a request without the parameter gets: a warning for each problem.
func fieldValidation(v string) string {
	if v == "" {
		return metav1.FieldValidationWarn
	}
	return v
}

func isDryRun(values []string) bool { return len(values) > 0 }

// manager returns the name under which a write is recorded: the fieldManager parameter, or the client's program name.
func (c *Call) manager(param string) string { return apply.ManagerName(param, c.Agent) }
