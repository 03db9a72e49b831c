package core

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/auth"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func serviceAccountKind() rule.Kind {
	return rule.Of[corev1.ServiceAccount](rule.Kind{
		Group: coreV1, Kind: "ServiceAccount", Plural: "serviceaccounts", Short: []string{"sa"}, ReturnsDeleted: true,
		Subresources: []catalog.Subresource{auth.TokenSubresource()},
		Strategy: &catalog.Strategy{
			ValidName:           validation.ValidateServiceAccountName,
			Cells:               rule.NameAndAge,
			PrepareCreate:       prepareServiceAccountCreate,
			PrepareUpdate:       prepareServiceAccountUpdate,
			Warnings:            warnServiceAccount,
			VisibleOnReturn:     true,
			UnconditionalUpdate: true,
		},
	})
}

// enforceMountableSecrets is the annotation that limited a service account to the secrets that it lists.
const enforceMountableSecrets = "kubernetes.io/enforce-mountable-secrets"

func prepareServiceAccountCreate(obj object.Object, _ catalog.Env) { cleanSecretReferences(obj) }

func prepareServiceAccountUpdate(obj, _ object.Object, _ string, _ catalog.Env) {
	cleanSecretReferences(obj)
}

// cleanSecretReferences keeps only the names in secrets, which refer to the service account's own namespace.
func cleanSecretReferences(obj object.Object) {
	secrets, _ := obj["secrets"].([]any)
	for i := range secrets {
		ref, _ := secrets[i].(map[string]any)
		clean := map[string]any{}
		if name := object.String(ref, "name"); name != "" {
			clean["name"] = name
		}
		secrets[i] = clean
	}
}

// warnServiceAccount warns about a newly set deprecated annotation.
func warnServiceAccount(obj, old object.Object, _ string) []string {
	if object.Map(obj, "metadata", "annotations")[enforceMountableSecrets] == nil ||
		object.Map(old, "metadata", "annotations")[enforceMountableSecrets] != nil {
		return nil
	}
	return []string{
		fmt.Sprintf(
			"metadata.annotations[%s]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets", enforceMountableSecrets),
	}
}
