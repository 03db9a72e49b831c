package review

import (
	"context"
	"time"

	"github.com/google/uuid"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/feature/review/why"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/request"
)

// Part adds the reviews, and token requests. maxTokenLife bounds the lifetime of tokens; 0 means no bound.
// webhookTokens allows tokens that are bound to configurations of webhooks.
func Part(maxTokenLife time.Duration, webhookTokens bool) part.Part {
	return part.Part{Name: "reviews", Handlers: func(h *part.Host) part.Handlers {
		return part.Handlers{Answers: Answers(Config{
			Token: h.Authenticator.Token, Authorizer: h.Authorizer, Ruler: h.Authorizer, Tokens: h.Tokens, View: h.View,
			Explain: explainer(h),
			Now:     time.Now, NewUID: uuid.NewString, MaxTokenLife: maxTokenLife,
			WebhookTokens: webhookTokens,
		})}
	}}
}

// explainer explains by the stored roles.
func explainer(h *part.Host) func(ctx context.Context, caller, u user.Info, info *request.Info) any {
	r := &why.Reader{View: h.View, Authorizer: h.Authorizer}
	return func(ctx context.Context, caller, u user.Info, info *request.Info) any {
		return r.Explain(ctx, caller, u, info)
	}
}
