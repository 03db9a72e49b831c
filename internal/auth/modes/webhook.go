package modes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/net/foreign"
	"github.com/bowsprit/bowsprit/internal/request"
)

// webhookRetry is Kubernetes' backoff for failing webhooks.
var webhookRetry = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5}

// remote is a webhook.
type remote struct{ authorizer *webhook.WebhookAuthorizer }

func (m *Modes) webhook(c apiserver.AuthorizerConfiguration) (authz.Mode, error) {
	w := c.Webhook
	if w.ConnectionInfo.KubeConfigFile == nil {
		// Such a file passes Kubernetes' checks, and kube-apiserver crashes.
		return nil, fmt.Errorf("authorization webhook %s: connectionInfo.type %s is not for API servers: use %s", c.Name,
			w.ConnectionInfo.Type, apiserver.AuthorizationWebhookConnectionInfoTypeKubeConfigFile)
	}
	client, err := webhookutil.LoadKubeconfig(*w.ConnectionInfo.KubeConfigFile, m.config.Dial)
	if err != nil {
		return nil, fmt.Errorf("authorization webhook %s: %w", c.Name, err)
	}
	client.Wrap(foreign.Document)
	if w.Timeout.Duration != 0 {
		client.Timeout = w.Timeout.Duration
	}
	var onError authorizer.Decision
	switch w.FailurePolicy {
	case apiserver.FailurePolicyNoOpinion:
		onError = authorizer.DecisionNoOpinion
	case apiserver.FailurePolicyDeny:
		onError = authorizer.DecisionDeny
	default:
		return nil, fmt.Errorf("unknown failurePolicy %q", w.FailurePolicy)
	}
	authorized, unauthorized := w.AuthorizedTTL.Duration, w.UnauthorizedTTL.Duration
	if !w.CacheAuthorizedRequests {
		authorized = 0
	}
	if !w.CacheUnauthorizedRequests {
		unauthorized = 0
	}
	a, err := webhook.New(client, w.SubjectAccessReviewVersion, authorized, unauthorized, webhookRetry, onError,
		w.MatchConditions, c.Name, m.metrics, m.compiler)
	if err != nil {
		return nil, fmt.Errorf("authorization webhook %s: %w", c.Name, err)
	}
	return remote{a}, nil
}

// Authorize implements authz.Authorizer. Unlike requests that wait for other webhooks, the request keeps its seats
// meanwhile, as in Kubernetes: before it is authorized, no user may have more requests in progress than the priority
// level's seats.
func (r remote) Authorize(ctx context.Context, u user.Info, info *request.Info) (authz.Decision, error) {
	decision, reason, err := r.authorizer.Authorize(ctx, attributes(u, info))
	out := authz.Decision{Reason: foreign.Clip(reason, foreign.MaxText)}
	switch decision {
	case authorizer.DecisionAllow:
		out.Verdict = authz.Allow
	case authorizer.DecisionDeny:
		out.Verdict = authz.Deny
	}
	return out, foreign.Error(err)
}

// Rules implements authz.Ruler: a webhook only decides about single requests.
func (remote) Rules(context.Context, user.Info, string) (authz.Rules, error) {
	return authz.Rules{Incomplete: true}, errors.New("webhook authorizer does not support user rule resolution")
}

// attributes converts a request to the library's type. It omits a selector that cannot be parsed, which makes the
// request broader.
func attributes(u user.Info, info *request.Info) authorizer.AttributesRecord {
	a := authorizer.AttributesRecord{
		User: u, Verb: info.Verb, Namespace: info.Namespace, APIGroup: info.Group, APIVersion: info.Version,
		Resource: info.Resource, Subresource: info.Subresource, Name: info.Name, ResourceRequest: info.IsResource,
		Path: info.Path,
	}
	if info.FieldSelector != "" {
		selector, err := fields.ParseSelector(info.FieldSelector)
		if a.FieldSelectorParsingErr = err; err == nil {
			a.FieldSelectorRequirements = selector.Requirements()
		}
	}
	if info.LabelSelector != "" {
		selector, err := labels.Parse(info.LabelSelector)
		if a.LabelSelectorParsingErr = err; err == nil {
			a.LabelSelectorRequirements, _ = selector.Requirements()
		}
	}
	return a
}
