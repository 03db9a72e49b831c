package control

import (
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// settled reports whether a definition has all requested names, so that changes of other definitions do not affect it.
func settled(def *apiextensionsv1.CustomResourceDefinition) bool {
	return hasCondition(def, apiextensionsv1.NamesAccepted) && established(def)
}

// established reports whether a definition was ever served; only then can it have objects.
func established(def *apiextensionsv1.CustomResourceDefinition) bool {
	return hasCondition(def, apiextensionsv1.Established)
}

// holdsObjects reports whether a definition waits for its objects to be deleted.
func holdsObjects(def *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.Contains(def.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer)
}

// shownFor is the minimum time that a definition reports the deletion of its objects, if another controller's finalizer
// holds it anyway: a polling client must be able to see it.
const shownFor = 2 * time.Second // condition times are whole seconds

// lingers reports whether it is too early to report the objects of a definition as gone.
func lingers(def *apiextensionsv1.CustomResourceDefinition, now time.Time) bool {
	held := slices.ContainsFunc(def.Finalizers,
		func(f string) bool { return f != apiextensionsv1.CustomResourceCleanupFinalizer })
	return held &&
		slices.ContainsFunc(def.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Terminating && now.Before(c.LastTransitionTime.Add(shownFor))
		})
}

func hasCondition(
	def *apiextensionsv1.CustomResourceDefinition, kind apiextensionsv1.CustomResourceDefinitionConditionType,
) bool {
	return slices.ContainsFunc(def.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == kind && c.Status == apiextensionsv1.ConditionTrue
	})
}
