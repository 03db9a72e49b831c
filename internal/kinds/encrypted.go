package kinds

import (
	"strings"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// EncryptedAsSecrets returns the function that says as whose objects custom ones are encrypted that have sensitive
// fields: as secrets; "" for the prefixes of the built-in resources.
func EncryptedAsSecrets(resources []*catalog.Resource) func(prefix string) string {
	builtIn := map[string]bool{}
	for _, r := range resources {
		builtIn[r.Prefix] = true
	}
	return func(prefix string) string {
		if group, _, ok := strings.Cut(prefix, "/"); ok && strings.Contains(group, ".") && !builtIn[prefix] {
			return "secrets"
		}
		return ""
	}
}
