package review

import (
	"context"
	"strings"
	"unicode"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// self answers a SelfSubjectReview with the user of the request.
func (r Reviews) self(
	_ context.Context, c *verb.Call, obj object.Object, validateAdmission func(object.Object) error,
) (object.Object, error) {
	if err := validateAdmission(obj); err != nil {
		return nil, err
	}
	return write(&authenticationv1.SelfSubjectReview{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(r.Now().UTC())},
		Status:     authenticationv1.SelfSubjectReviewStatus{UserInfo: userInfo(c.User)},
	})
}

// token answers a TokenReview with the user of a token, and the audiences that it is valid for.
func (r Reviews) token(
	ctx context.Context, _ *verb.Call, obj object.Object, validateAdmission func(object.Object) error,
) (object.Object, error) {
	review, err := read[authenticationv1.TokenReview](obj)
	if err != nil {
		return nil, err
	}
	if review.Spec.Token == "" {
		return nil, apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	if err := validateAdmission(obj); err != nil {
		return nil, err
	}
	// As in an Authorization header: clients may have read the token from a file that ends with a new line.
	token, _, _ := strings.Cut(strings.TrimRightFunc(review.Spec.Token, unicode.IsSpace), " ")
	u, audiences, err := r.Token(ctx, token, review.Spec.Audiences)
	// As in Kubernetes, status fields that a client has sent and the server does not set stay.
	review.Status.Authenticated = err == nil
	if err != nil {
		review.Status.Error = err.Error()
		return write(review)
	}
	review.Status.User = userInfo(u)
	review.Status.Audiences = audiences
	return write(review)
}

func userInfo(u user.Info) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	for key, values := range u.GetExtra() {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[key] = values
	}
	return info
}
