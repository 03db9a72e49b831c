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
	"github.com/bowsprit/bowsprit/internal/foreign"
)

// delegatedTTL is how long answers of the other server are remembered: that of kube's extension API servers.
const delegatedTTL = 10 * time.Second

// Delegate returns a mode that asks another API server, by SubjectAccessReviews. What that one does not allow is not
// allowed; if it cannot be asked, nothing is.
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
