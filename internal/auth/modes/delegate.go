package modes

import (
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook"
	webhookmetrics "k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

// delegatedTTL is how long decisions of the other server are cached, as in Kubernetes' extension API servers.
const delegatedTTL = 10 * time.Second

// Delegate returns a mode that sends SubjectAccessReviews to another API server. If that server does not allow a
// request, or does not respond, the request is not allowed.
func Delegate(config *rest.Config) (authz.Mode, error) {
	config = rest.CopyConfig(config)
	config.Wrap(foreign.Document)
	client, err := authorizationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("access reviews: %w", err)
	}
	a, err := webhook.NewFromInterface(client, delegatedTTL, delegatedTTL, webhookRetry, authorizer.DecisionNoOpinion,
		webhookmetrics.NoopAuthorizerMetrics{}, nil)
	if err != nil {
		return nil, fmt.Errorf("access reviews: %w", err)
	}
	return remote{a}, nil
}
