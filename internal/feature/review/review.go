// Package review answers the virtual resources of authentication and authorization: SelfSubjectReview, TokenReview,
// access reviews, and TokenRequest, which issues tokens of service accounts. Nothing of it is stored.
//
// Package verb decodes and admits a request and then calls it. It calls authn, authz and serviceaccount for the answer.
// Reviews is safe for concurrent use. Source: pkg/registry/authentication, pkg/registry/authorization and
// pkg/registry/core/serviceaccount of Kubernetes 1.36.
package review

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/auth/serviceaccount"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Config configures Reviews. All fields are required except the last three.
type Config struct {
	// Token authenticates a bearer token: authn.Authenticator.Token.
	Token      func(ctx context.Context, token string, audiences []string) (user.Info, []string, error)
	Authorizer authz.Authorizer
	Ruler      authz.Ruler
	Tokens     *serviceaccount.Tokens
	View       *watchcache.View
	Now        func() time.Time
	NewUID     func() string
	// Explain explains to a caller why a user may not do something, as an object for the review's status. Nil disables
	// explanations.
	Explain func(ctx context.Context, caller, u user.Info, info *request.Info) any
	// MaxTokenLife bounds the lifetime of requested tokens; 0 means no bound.
	MaxTokenLife time.Duration
	// WebhookTokens allows tokens that are bound to configurations of webhooks.
	WebhookTokens bool
}

// Reviews answers reviews and token requests.
type Reviews struct{ Config }

// Answers returns the answers of the virtual resources, for verb.Config.
func Answers(c Config) map[string]verb.Answer {
	r := Reviews{c}
	return map[string]verb.Answer{
		"selfsubjectreviews.authentication.k8s.io":       r.self,
		"tokenreviews.authentication.k8s.io":             r.token,
		"localsubjectaccessreviews.authorization.k8s.io": r.localAccess,
		"selfsubjectaccessreviews.authorization.k8s.io":  r.selfAccess,
		"selfsubjectrulesreviews.authorization.k8s.io":   r.rules,
		"subjectaccessreviews.authorization.k8s.io":      r.access,
		"serviceaccounts/token":                          r.issue,
	}
}

// read converts decoded JSON to a typed object. The kind's Decode rule has already rejected unreadable objects.
func read[T any](obj object.Object) (*T, error) {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, typed); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return typed, nil
}

// write converts a typed object to decoded JSON.
func write(typed any) (object.Object, error) {
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if meta, ok := obj["metadata"].(map[string]any); ok && meta["creationTimestamp"] == nil {
		delete(meta, "creationTimestamp")
	}
	return obj, nil
}
