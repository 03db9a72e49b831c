package admission

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/bowsprit/bowsprit/internal/admit/registration"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func mutatingWebhookKind() rule.Kind {
	return rule.Of[admissionregistrationv1.MutatingWebhookConfiguration](admissionKind("MutatingWebhookConfiguration",
		"mutatingwebhookconfigurations", mutatingWebhookRules(), rule.Printed(mutatingWebhookCells)))
}

func mutatingWebhookRules() *catalog.Strategy {
	return admissionRules(func(obj object.Object) { registration.DefaultWebhooks(obj, true) },
		registration.CheckMutatingWebhooks)
}

func mutatingWebhookCells(c *admissionregistrationv1.MutatingWebhookConfiguration, e catalog.Env) []any {
	return []any{c.Name, int64(len(c.Webhooks)), rule.Ago(c.CreationTimestamp, e)}
}
