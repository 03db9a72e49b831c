package review

import (
	"time"

	"github.com/google/uuid"

	"github.com/bowsprit/bowsprit/internal/part"
)

// Part brings the answers to reviews, and the tokens that clients ask for. maxTokenLife shortens these; 0 means not to.
func Part(maxTokenLife time.Duration) part.Part {
	return part.Part{Name: "reviews", Handlers: func(h *part.Host) part.Handlers {
		return part.Handlers{Answers: Answers(Config{
			Token: h.Authenticator.Token, Authorizer: h.Authorizer, Ruler: h.Authorizer, Tokens: h.Tokens, View: h.View,
			Now: time.Now, NewUID: uuid.NewString, MaxTokenLife: maxTokenLife,
		})}
	}}
}
