package kinds

import (
	"strings"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// EncryptedAsSecrets returns a function that returns the resource with the encryption settings for a prefix: secrets
// for custom objects with sensitive fields, and "" for the prefixes of built-in resources.
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
