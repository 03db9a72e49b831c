package network

import (
	"context"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
)

// ingressClassAnnotation is the deprecated annotation for the class of an Ingress.
const ingressClassAnnotation = "kubernetes.io/ingress.class"

// IngressClass sets the default class of Ingresses without a class, if there is a default.
func IngressClass(c plugin.Config) []plugin.Rule {
	classes := plugin.NewDefaultClass(c.View, "ingressclasses",
		`metadata.annotations.ingressclass\.kubernetes\.io/is-default-class`)
	return []plugin.Rule{{Group: "networking.k8s.io", Plural: "ingresses", Operations: plugin.Creates,
		Mutate: func(_ context.Context, a *admit.Attributes) error {
			if _, old := catalog.At(a.Object, "metadata", "annotations")[ingressClassAnnotation]; old ||
				catalog.At(a.Object, "spec")["ingressClassName"] != nil {
				return nil
			}
			if name := classes.Name(); name != "" {
				a.Edit("spec")["ingressClassName"] = name
			}
			return nil
		}}}
}
