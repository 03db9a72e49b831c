package plugin

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

const storageClasses = "storageclasses"

// storageClass gives claims without a class the default one, if there is one.
func storageClass(c Config) []rule {
	classes := newDefaultClass(c.View, storageClasses,
		`metadata.annotations.storageclass\.kubernetes\.io/is-default-class`,
		`metadata.annotations.storageclass\.beta\.kubernetes\.io/is-default-class`)
	return []rule{{plural: "persistentvolumeclaims", operations: creates,
		mutate: func(_ context.Context, a *admit.Attributes) error {
			if _, old := catalog.At(a.Object, "metadata", "annotations")[corev1.BetaStorageClassAnnotation]; old ||
				catalog.At(a.Object, "spec")["storageClassName"] != nil {
				return nil // also if it says that it wants none: ""
			}
			if name := classes.name(); name != "" {
				a.Edit("spec")["storageClassName"] = name
			}
			return nil
		}}}
}
