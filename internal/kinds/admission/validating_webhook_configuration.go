package admission

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/bowsprit/bowsprit/internal/admit/registration"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func validatingWebhookKind() rule.Kind {
	return rule.Of[admissionregistrationv1.ValidatingWebhookConfiguration](
		admissionKind("ValidatingWebhookConfiguration",
			"validatingwebhookconfigurations", validatingWebhookRules(), rule.Printed(validatingWebhookCells)))
}

func validatingWebhookRules() *catalog.Strategy {
	return admissionStrategy(func(obj object.Object) { registration.DefaultWebhooks(obj, false) })
}

func validatingWebhookCells(c *admissionregistrationv1.ValidatingWebhookConfiguration, e catalog.Env) []any {
	return []any{c.Name, int64(len(c.Webhooks)), rule.Ago(c.CreationTimestamp, e)}
}

// validatingWebhookConfigurationFunctions are the functions that validating_webhook_configuration.txt names.
func validatingWebhookConfigurationFunctions() rule.Functions {
	return rule.Functions{
		"validatingWebhooks": checked(registration.CheckValidatingWebhooks),
	}
}
