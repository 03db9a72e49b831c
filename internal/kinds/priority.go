package kinds

import "github.com/bowsprit/bowsprit/internal/kinds/check"

// keepSystemClass keeps the priority classes without which no cluster works.
func keepSystemClass(name string) string {
	if _, system := check.SystemPriority(name); system {
		return "this is a system priority class and cannot be deleted"
	}
	return ""
}
