// Package review answers the questions that clients ask by a POST: who am I, whose token is this, may a user do that;
// and gives service accounts their tokens. Nothing of it is stored.
//
// It stands behind package verb, which decodes and admits the question, and before authn, authz and serviceaccount, who
// know the answers. Reviews is safe for concurrent use. Rules: pkg/registry/authentication, pkg/registry/authorization
// and pkg/registry/core/serviceaccount of Kubernetes 1.36.
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

// Config is what Reviews works with. All fields are required but MaxTokenLife and Explain.
type Config struct {
	// Token says whose bearer token it is: authn.Authenticator.Token.
	Token      func(ctx context.Context, token string, audiences []string) (user.Info, []string, error)
	Authorizer authz.Authorizer
	Ruler      authz.Ruler
	Tokens     *serviceaccount.Tokens
	View       *watchcache.View
	Now        func() time.Time
	NewUID     func() string
	// Explain says to a caller why a user may not do something: an object for the review's status. Nil is no
	// explanations.
	Explain func(ctx context.Context, caller, who user.Info, what *request.Info) any
	// MaxTokenLife shortens the tokens that are asked for; 0 means not to.
	MaxTokenLife time.Duration
}

// Reviews answers.
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

// read makes a typed object of decoded JSON. What cannot be read has not passed the kind's Decode rule.
func read[T any](obj object.Object) (*T, error) {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, typed); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return typed, nil
}

// write makes decoded JSON of a typed object.
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
