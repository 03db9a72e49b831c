package admit

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Forbidden is the 403 of a plugin that refuses a write for the reason why. An object without a name yet is called by
// the prefix of the name that it will get.
func Forbidden(a *Attributes, why error) *apierrors.StatusError {
	name := a.Name
	if name == "" {
		name = "Unknown"
		meta, _ := a.Object["metadata"].(map[string]any)
		for _, key := range []string{"name", "generateName"} {
			if s, _ := meta[key].(string); s != "" {
				name = s
				break
			}
		}
	}
	return apierrors.NewForbidden(a.GroupResource(), name, why)
}
