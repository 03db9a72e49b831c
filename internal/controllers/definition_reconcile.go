package controllers

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// settled tells whether a definition has all the names that it wants, so that no change of another one can help it.
func settled(def *apiextensionsv1.CustomResourceDefinition) bool {
	return hasCondition(def, apiextensionsv1.NamesAccepted) && established(def)
}

// established tells whether a definition was ever served; only then can it have objects.
func established(def *apiextensionsv1.CustomResourceDefinition) bool {
	return hasCondition(def, apiextensionsv1.Established)
}

// holdsObjects tells whether a definition waits for its objects to be deleted.
func holdsObjects(def *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.Contains(def.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer)
}

func hasCondition(def *apiextensionsv1.CustomResourceDefinition, kind apiextensionsv1.CustomResourceDefinitionConditionType) bool {
	return slices.ContainsFunc(def.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == kind && c.Status == apiextensionsv1.ConditionTrue
	})
}
