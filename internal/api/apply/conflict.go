package apply

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
)

// conflictError returns the 409 of an apply that would change other managers' fields, with a cause for each field.
// kubectl prints its text.
func conflictError(conflicts merge.Conflicts) error {
	// Conflicts come from a map; sort them so that repeated requests get the same error.
	slices.SortStableFunc(conflicts, func(a, b merge.Conflict) int { return strings.Compare(a.Manager, b.Manager) })
	causes := make([]metav1.StatusCause, 0, len(conflicts))
	for _, c := range conflicts {
		causes = append(causes, metav1.StatusCause{
			Type:    metav1.CauseTypeFieldManagerConflict,
			Message: "conflict with " + printManager(c.Manager),
			Field:   c.Path.String(),
		})
	}
	if len(conflicts) == 1 {
		c := conflicts[0]
		return apierrors.NewApplyConflict(causes,
			fmt.Sprintf("Apply failed with 1 conflict: conflict with %s: %v", printManager(c.Manager), c.Path))
	}
	var lines []string
	for i, c := range conflicts {
		if i == 0 || conflicts[i-1].Manager != c.Manager {
			lines = append(lines, fmt.Sprintf("conflicts with %s:", printManager(c.Manager)))
		}
		lines = append(lines, fmt.Sprintf("- %v", c.Path))
	}
	return apierrors.NewApplyConflict(causes,
		fmt.Sprintf("Apply failed with %d conflicts: %s", len(conflicts), strings.Join(lines, "\n")))
}

func printManager(id string) string {
	m := managerOf(id)
	text := fmt.Sprintf("%q", m.name)
	if m.subresource != "" {
		text += fmt.Sprintf(" with subresource %q", m.subresource)
	}
	if m.operation == metav1.ManagedFieldsOperationUpdate {
		text += " using " + m.apiVersion
	}
	return text
}
