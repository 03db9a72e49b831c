package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Account is the service account of the agents' tokens.
type Account struct{ Namespace, Name, Audience string }

// Reviewer returns a function that reviews, at an API server, whether a token belongs to an account. The error texts
// are upstream's.
func Reviewer(config *rest.Config, of Account) (func(ctx context.Context, token string) error, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	at := base.JoinPath("apis/authentication.k8s.io/v1/tokenreviews").String()
	return func(ctx context.Context, token string) error {
		review, err := ask(ctx, client, at, &authenticationv1.TokenReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"},
			Spec:     authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{of.Audience}},
		})
		if err != nil {
			return fmt.Errorf("Failed to authenticate request. err:%w", err) //lint:ignore ST1005 upstream's text
		}
		return of.check(&review.Status)
	}, nil
}

// ask reviews a token at the API server.
func ask(
	ctx context.Context, client *http.Client, at string, review *authenticationv1.TokenReview,
) (*authenticationv1.TokenReview, error) {
	body, err := json.Marshal(review)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		var status metav1.Status
		_ = json.Unmarshal(answer, &status) // a response of another kind has no message
		return nil, fmt.Errorf("%s: %s", resp.Status, status.Message)
	}
	out := &authenticationv1.TokenReview{}
	return out, json.Unmarshal(answer, out)
}

// check returns why a token is not that of the account.
func (a Account) check(s *authenticationv1.TokenReviewStatus) error {
	switch {
	case s.Error != "":
		return fmt.Errorf("lookup failed: %s", s.Error)
	case !s.Authenticated:
		return errors.New("lookup failed: service account jwt not valid")
	}
	parts := strings.Split(s.User.Username, ":")
	switch {
	case len(parts) != 4:
		return errors.New("lookup failed: unexpected username format")
	case parts[0] != "system" || parts[1] != "serviceaccount":
		return errors.New("lookup failed: username returned is not a service account")
	case parts[2] != a.Namespace:
		return fmt.Errorf("lookup failed: incoming request from %q namespace. Expected %q", parts[2], a.Namespace)
	case parts[3] != a.Name:
		return fmt.Errorf("lookup failed: incoming request from %q service account. Expected %q", parts[3], a.Name)
	}
	return nil
}
