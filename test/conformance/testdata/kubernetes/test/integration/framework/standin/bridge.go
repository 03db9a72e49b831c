package standin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/pkg/apis/authorization"
	convert "k8s.io/kubernetes/pkg/apis/authorization/v1"
	"k8s.io/kubernetes/pkg/registry/authorization/util"
)

// Anyone is the token with which a client asks an authenticator that needs none.
const Anyone = "stand-in"

// Server's own: what a test finds in a configuration, and may join with its own or replace.
type (
	ownAuthenticator struct{ _ int }
	ownAuthorizer    struct{ _ int }
)

// Own returns what stands for the authenticator and the authorizer of the server.
func Own() (authenticator.Request, authorizer.Authorizer) {
	return &ownAuthenticator{}, &ownAuthorizer{}
}

// AuthenticateRequest knows no user: the server has asked before.
func (*ownAuthenticator) AuthenticateRequest(*http.Request) (*authenticator.Response, bool, error) {
	return nil, false, nil
}

// Authorize has no opinion: the server asks before or afterwards.
func (*ownAuthorizer) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionNoOpinion, "", nil
}

// ConditionsAwareAuthorize is Authorize: the stand-in has no conditions.
func (o *ownAuthorizer) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(o.Authorize(ctx, a))
}

// EvaluateConditions refuses: the stand-in has no conditions.
func (*ownAuthorizer) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData,
) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

// AuthenticationFlags returns flags with which a server asks a, in this process, whose a token is.
func AuthenticationFlags(t testing.TB, dir string, a authenticator.Request) []string {
	if _, own := a.(*ownAuthenticator); own || a == nil {
		return nil
	}
	file := listen(t, dir, "authentication", func(w http.ResponseWriter, r *http.Request) {
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		request, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, "/", nil)
		request.Header.Set("Authorization", "Bearer "+review.Spec.Token)
		response, ok, err := a.AuthenticateRequest(request)
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: ok}
		if err != nil {
			review.Status.Error = err.Error()
		}
		if ok {
			user := authenticationv1.UserInfo{Username: response.User.GetName(), UID: response.User.GetUID(),
				Groups: response.User.GetGroups()}
			for key, values := range response.User.GetExtra() {
				if user.Extra == nil {
					user.Extra = map[string]authenticationv1.ExtraValue{}
				}
				user.Extra[key] = values
			}
			review.Status.User, review.Status.Audiences = user, response.Audiences
		}
		_ = json.NewEncoder(w).Encode(review)
	})
	return []string{"--authentication-token-webhook-config-file=" + file, "--authentication-token-webhook-version=v1",
		"--authentication-token-webhook-cache-ttl=1ns"}
}

// AuthorizationFlags returns the modes of a server that asks a, in this process, and what they need. Where a joins the
// server's own with others, modes are asked before them or after, as a does.
func AuthorizationFlags(t testing.TB, dir string, a authorizer.Authorizer, modes []string) ([]string, []string) {
	if _, own := a.(*ownAuthorizer); own || a == nil {
		return modes, nil
	}
	switch first, asked := places(reflect.ValueOf(a)); {
	case !asked:
		modes = []string{"Webhook"}
	case first:
		modes = append(append([]string(nil), modes...), "Webhook")
	default:
		modes = append([]string{"Webhook"}, modes...)
	}
	file := listen(t, dir, "authorization", func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var spec authorization.SubjectAccessReviewSpec
		err := convert.Convert_v1_SubjectAccessReviewSpec_To_authorization_SubjectAccessReviewSpec(&review.Spec, &spec, nil)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		decision, reason, err := a.Authorize(r.Context(), util.AuthorizationAttributesFrom(spec))
		review.Status = authorizationv1.SubjectAccessReviewStatus{Reason: reason,
			Allowed: decision == authorizer.DecisionAllow, Denied: decision == authorizer.DecisionDeny}
		if err != nil {
			review.Status.EvaluationError = err.Error()
		}
		_ = json.NewEncoder(w).Encode(review)
	})
	return modes, []string{"--authorization-webhook-config-file=" + file, "--authorization-webhook-version=v1",
		"--authorization-webhook-cache-authorized-ttl=1ns", "--authorization-webhook-cache-unauthorized-ttl=1ns"}
}

// places reports whether v asks the server's own authorizer at all, and whether it does so before others.
func places(v reflect.Value) (first, asked bool) {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		if v.Type() == reflect.TypeFor[*ownAuthorizer]() {
			return true, true
		}
		if v.IsNil() {
			return false, false
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			if _, asked := places(v.Index(i)); asked {
				return i == 0, true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).Kind() == reflect.Interface {
				if _, asked := places(v.Field(i)); asked {
					return false, true
				}
			}
		}
	default:
	}
	return false, false
}

// listen serves handle until the test ends, and returns the file of a kubeconfig that leads there.
func listen(t testing.TB, dir, name string, handle http.HandlerFunc) string {
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	file := filepath.Join(dir, name+".kubeconfig")
	config := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: %q}}]
users: [{name: test, user: {}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
`, server.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
