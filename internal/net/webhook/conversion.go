package webhook

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// CallConversion is Call for the conversion webhook of a definition.
func (c *Client) CallConversion(
	ctx context.Context, config *apiextensionsv1.WebhookClientConfig, body []byte,
) ([]byte, error) {
	return c.Call(ctx, conversionTarget(config), body)
}

// conversionTarget returns the address of a definition's webhook.
func conversionTarget(c *apiextensionsv1.WebhookClientConfig) Target {
	t := Target{CABundle: c.CABundle}
	if c.URL != nil {
		t.URL = *c.URL
	}
	if s := c.Service; s != nil {
		t.Service = &Service{Namespace: s.Namespace, Name: s.Name}
		if s.Port != nil {
			t.Service.Port = *s.Port
		}
		if s.Path != nil {
			t.Service.Path = *s.Path
		}
	}
	return t
}
