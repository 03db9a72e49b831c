package plugin

import (
	"context"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// ingressClassAnnotation named the class of an Ingress before there was a field for it.
const ingressClassAnnotation = "kubernetes.io/ingress.class"

// ingressClass gives Ingresses without a class the default one, if there is one.
func ingressClass(c Config) []rule {
	classes := newDefaultClass(c.View, "ingressclasses",
		`metadata.annotations.ingressclass\.kubernetes\.io/is-default-class`)
	return []rule{{group: "networking.k8s.io", plural: "ingresses", operations: creates,
		mutate: func(_ context.Context, a *admit.Attributes) error {
			if _, old := catalog.At(a.Object, "metadata", "annotations")[ingressClassAnnotation]; old ||
				catalog.At(a.Object, "spec")["ingressClassName"] != nil {
				return nil
			}
			if name := classes.name(); name != "" {
				a.Edit("spec")["ingressClassName"] = name
			}
			return nil
		}}}
}
