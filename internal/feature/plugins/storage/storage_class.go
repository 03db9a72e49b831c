package storage

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

const storageClasses = "storageclasses"

// DefaultStorageClass returns the DefaultClass of claims.
func DefaultStorageClass(view *watchcache.View) *plugin.DefaultClass {
	return plugin.NewDefaultClass(view, storageClasses,
		`metadata.annotations.storageclass\.kubernetes\.io/is-default-class`,
		`metadata.annotations.storageclass\.beta\.kubernetes\.io/is-default-class`)
}

// StorageClass sets the default class of claims without a class, if there is a default.
func StorageClass(c plugin.Config) []plugin.Rule {
	classes := DefaultStorageClass(c.View)
	return []plugin.Rule{{Plural: "persistentvolumeclaims", Operations: plugin.Creates,
		Mutate: func(_ context.Context, a *admit.Attributes) error {
			if _, old := catalog.At(a.Object, "metadata", "annotations")[corev1.BetaStorageClassAnnotation]; old ||
				catalog.At(a.Object, "spec")["storageClassName"] != nil {
				return nil // also for "", which means no class
			}
			if name := classes.Name(); name != "" {
				a.Edit("spec")["storageClassName"] = name
			}
			return nil
		}}}
}
