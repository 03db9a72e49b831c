package token

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/webhook"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

// Delegated sends TokenReviews to another API server.
type Delegated struct{ all authenticator.Token }

// The time limit of a request, and how long results are cached, as in Kubernetes' extension API servers.
const (
	delegatedTimeout = 10 * time.Second
	delegatedTTL     = 10 * time.Second
)

// Delegate returns a Delegated for the server of config.
func Delegate(config *rest.Config) (*Delegated, error) {
	config = rest.CopyConfig(config)
	config.Wrap(foreign.Document)
	client, err := authenticationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("token reviews: %w", err)
	}
	hook, err := webhook.NewFromInterface(client, nil, webhookRetry, delegatedTimeout, webhook.AuthenticatorMetrics{
		RecordRequestTotal:   func(context.Context, string) {},
		RecordRequestLatency: func(context.Context, string, float64) {},
	})
	if err != nil {
		return nil, fmt.Errorf("token reviews: %w", err)
	}
	return &Delegated{tokencache.New(hook, false, delegatedTTL, delegatedTTL)}, nil
}

// Authenticate implements authn.Bearer.
func (d *Delegated) Authenticate(ctx context.Context, token string, wanted []string) (user.Info, []string, error) {
	if len(wanted) > 0 {
		ctx = authenticator.WithAudiences(ctx, wanted)
	}
	answer, ok, err := d.all.AuthenticateToken(ctx, token)
	if err != nil || !ok {
		return nil, nil, foreign.Error(err)
	}
	return answer.User, answer.Audiences, nil
}
