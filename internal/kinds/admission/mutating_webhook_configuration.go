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
	return admissionStrategy(func(obj object.Object) { registration.DefaultWebhooks(obj, true) })
}

func mutatingWebhookCells(c *admissionregistrationv1.MutatingWebhookConfiguration, e catalog.Env) []any {
	return []any{c.Name, int64(len(c.Webhooks)), rule.Ago(c.CreationTimestamp, e)}
}

// mutatingWebhookConfigurationFunctions are the functions that mutating_webhook_configuration.txt names.
func mutatingWebhookConfigurationFunctions() rule.Functions {
	return rule.Functions{
		"mutatingWebhooks": checked(registration.CheckMutatingWebhooks),
	}
}
