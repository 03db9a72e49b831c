package network

import (
	"context"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
)

// ingressClassAnnotation named the class of an Ingress before there was a field for it.
const ingressClassAnnotation = "kubernetes.io/ingress.class"

// IngressClass gives Ingresses without a class the default one, if there is one.
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
