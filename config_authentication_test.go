package bowsprit_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

// TestAlwaysAllow checks that with AlwaysAllow every authenticated user may do everything, and all other callers are
// refused.
func TestAlwaysAllow(t *testing.T) {
	tokens := tokenFile(t, "secret,eve,1")
	server := testserver.Start(t, func(c *bowsprit.Config) {
		c.Authorization.Modes, c.Authentication.TokenAuthFile = []string{"AlwaysAllow"}, tokens
	})
	as := func(token string) *kubernetes.Clientset {
		config := rest.AnonymousClientConfig(server.RESTConfig())
		config.BearerToken = token
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	if _, err := as("secret").CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	review, err := as("secret").AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
		&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "bob", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "delete", Resource: "nodes"},
		}}, metav1.CreateOptions{})
	if err != nil || !review.Status.Allowed {
		t.Errorf("review of bob: %+v, %v", review.Status, err)
	}
	rules, err := as("secret").AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"}},
		metav1.CreateOptions{})
	if err != nil || len(rules.Status.ResourceRules) != 1 || rules.Status.ResourceRules[0].Verbs[0] != "*" {
		t.Errorf("own rules: %+v, %v", rules.Status, err)
	}
	if err := as("").RESTClient().Get().AbsPath("/healthz").Do(t.Context()).Error(); !apierrors.IsUnauthorized(err) {
		t.Errorf("anonymous: %v", err)
	}
}

func TestNoAnonymous(t *testing.T) {
	server := testserver.Start(t, func(c *bowsprit.Config) { c.Authentication.Anonymous = new(bool) })
	client, err := rest.HTTPClientFor(rest.AnonymousClientConfig(server.RESTConfig()))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Get(server.URL() + "/version")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Error(resp.Status)
	}
}

// tokenFile writes a file for --token-auth-file.
func tokenFile(t *testing.T, line string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
