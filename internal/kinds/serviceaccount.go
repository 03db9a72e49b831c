package kinds

import (
	"fmt"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// enforceMountableSecrets is the annotation that limited a service account to the secrets that it lists.
const enforceMountableSecrets = "kubernetes.io/enforce-mountable-secrets"

func prepareServiceAccountCreate(obj catalog.Object, _ catalog.Env) { cleanSecretReferences(obj) }

func prepareServiceAccountUpdate(obj, _ catalog.Object, _ string, _ catalog.Env) {
	cleanSecretReferences(obj)
}

// cleanSecretReferences keeps nothing but the names in secrets, which refer to the service account's own namespace.
func cleanSecretReferences(obj catalog.Object) {
	secrets, _ := obj["secrets"].([]any)
	for i := range secrets {
		ref, _ := secrets[i].(map[string]any)
		clean := map[string]any{}
		if name := catalog.Text(ref, "name"); name != "" {
			clean["name"] = name
		}
		secrets[i] = clean
	}
}

// warnServiceAccount speaks about an annotation that is new.
func warnServiceAccount(obj, old catalog.Object, _ string) []string {
	if catalog.At(obj, "metadata", "annotations")[enforceMountableSecrets] == nil ||
		catalog.At(old, "metadata", "annotations")[enforceMountableSecrets] != nil {
		return nil
	}
	return []string{
		fmt.Sprintf(
			"metadata.annotations[%s]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets", enforceMountableSecrets),
	}
}
