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

// Part brings the answers to reviews, and the tokens that clients ask for. maxTokenLife shortens these; 0 means not to.
func Part(maxTokenLife time.Duration) part.Part {
	return part.Part{Name: "reviews", Handlers: func(h *part.Host) part.Handlers {
		return part.Handlers{Answers: Answers(Config{
			Token: h.Authenticator.Token, Authorizer: h.Authorizer, Ruler: h.Authorizer, Tokens: h.Tokens, View: h.View,
			Explain: explainer(h),
			Now:     time.Now, NewUID: uuid.NewString, MaxTokenLife: maxTokenLife,
		})}
	}}
}

// explainer explains by the roles that are there.
func explainer(h *part.Host) func(ctx context.Context, caller, who user.Info, what *request.Info) any {
	r := &why.Reader{View: h.View, Authorizer: h.Authorizer}
	return func(ctx context.Context, caller, who user.Info, what *request.Info) any {
		return r.Explain(ctx, caller, who, what)
	}
}
