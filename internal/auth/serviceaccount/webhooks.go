package serviceaccount

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// WebhookTokens is the feature for tokens that are bound to configurations of webhooks (KEP-6060).
const WebhookTokens = "APIServerWebhookAuthenticationToken"

// User returns the user that a service account is for authorizers.
func User(namespace string, account Named) user.Info {
	info := serviceaccount.ServiceAccountInfo{Namespace: namespace, Name: account.Name, UID: account.UID}
	return info.UserInfo()
}

// checkWebhooks checks a token that is bound to a configuration of webhooks, and adds its claims to the user.
func (t *Tokens) checkWebhooks(ctx context.Context, b *Bound, info *serviceaccount.ServiceAccountInfo) error {
	if b.ValidatingWebhooks == nil && b.MutatingWebhooks == nil {
		return nil
	}
	if t.config.ValidatingWebhooks == "" || t.config.MutatingWebhooks == "" {
		return fmt.Errorf("feature gate %q is disabled, but token is webhook bound", WebhookTokens)
	}
	const attestation = authenticationv1.AttestationAdmissionReviewAPIGroups
	if info.AttestationAdmissionReviewAPIGroups = b.Attestations[attestation]; len(
		info.AttestationAdmissionReviewAPIGroups) == 0 {
		return fmt.Errorf("bound object was a webhook config, but %q attestation is missing", attestation)
	}
	if to := b.ValidatingWebhooks; to != nil {
		if err := t.holds(ctx, t.config.ValidatingWebhooks, "", *to,
			otherWebhooks("ValidatingWebhookConfiguration")); err != nil {
			return err
		}
		info.ValidatingWebhookConfigurationName, info.ValidatingWebhookConfigurationUID = to.Name, to.UID
	}
	if to := b.MutatingWebhooks; to != nil {
		if err := t.holds(ctx, t.config.MutatingWebhooks, "", *to,
			otherWebhooks("MutatingWebhookConfiguration")); err != nil {
			return err
		}
		info.MutatingWebhookConfigurationName, info.MutatingWebhookConfigurationUID = to.Name, to.UID
	}
	return nil
}

// otherWebhooks is the format of the error for another configuration of the same name, with Kubernetes' text.
func otherWebhooks(kind string) string {
	return kind + " UID (%s) does not match service account validating ref claim (%s)"
}
