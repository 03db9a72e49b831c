package accounts_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/testserver"
)

var accounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}

func typed(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// warningFunc receives the warnings of responses.
type warningFunc func(text string)

// HandleWarningHeader receives one warning.
func (f warningFunc) HandleWarningHeader(_ int, _, text string) { f(text) }

// TestEveryNamespaceGetsWhatProgramsNeed creates a namespace and deletes the generated objects repeatedly.
func TestEveryNamespaceGetsWhatProgramsNeed(t *testing.T) {
	c := controltest.Start(t)
	c.Create(controltest.Namespaces, controltest.Object("v1", "Namespace", "", "shop"))
	for range 2 {
		c.Until(accounts, "shop", "default")
		c.Until(controltest.ConfigMaps, "shop", "kube-root-ca.crt")
		c.Delete(accounts, controltest.Object("v1", "ServiceAccount", "shop", "default"), "")
		c.Delete(controltest.ConfigMaps, controltest.Object("v1", "ConfigMap", "shop", "kube-root-ca.crt"), "")
	}
	c.Until(controltest.ConfigMaps, "shop", "kube-root-ca.crt")
	patch := []byte(`{"data":{"ca.crt":"forged","more":"x"}}`)
	if _, err := c.In(controltest.ConfigMaps, "shop").Patch(t.Context(), "kube-root-ca.crt",
		"application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.When(controltest.ConfigMaps, "shop", "the certificate", func(objects map[string]*unstructured.Unstructured) bool {
		data, _, _ := unstructured.NestedStringMap(objects["kube-root-ca.crt"].Object, "data")
		return len(data) == 1 && strings.Contains(data["ca.crt"], "BEGIN CERTIFICATE")
	})
	c.Delete(controltest.Namespaces, controltest.Object("v1", "Namespace", "", "shop"), "")
	c.Until(controltest.Namespaces, "", "default kube-node-lease kube-public kube-system")
}

func TestTokenRequest(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t)
	admin := typed(t, server.RESTConfig())
	as := func(token string) kubernetes.Interface {
		config := rest.AnonymousClientConfig(server.RESTConfig())
		config.BearerToken = token
		return typed(t, config)
	}
	request := func(spec authenticationv1.TokenRequestSpec) (string, error) {
		out, err := admin.CoreV1().ServiceAccounts("shop").CreateToken(t.Context(), "robot",
			&authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		return out.Status.Token, nil
	}
	must := func(spec authenticationv1.TokenRequestSpec) string {
		t.Helper()
		token, err := request(spec)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	whoami := func(token string) (authenticationv1.UserInfo, error) {
		review, err := as(token).AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
			&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return authenticationv1.UserInfo{}, err
		}
		return review.Status.UserInfo, nil
	}

	if _, err := admin.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := request(authenticationv1.TokenRequestSpec{}); !apierrors.IsNotFound(err) ||
		err.Error() != `serviceaccounts "robot" not found` {
		t.Errorf("a token for nobody: %v", err)
	}
	account, err := admin.CoreV1().ServiceAccounts("shop").Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	plain := must(authenticationv1.TokenRequestSpec{})
	username, err := whoami(plain)
	if err != nil || username.Username != "system:serviceaccount:shop:robot" || username.UID != string(account.UID) ||
		strings.Join(username.Groups, " ") != "system:serviceaccounts system:serviceaccounts:shop system:authenticated" {
		t.Errorf("the token's user: %+v, %v", username, err)
	}
	claims := map[string]any{}
	payload, _ := base64.RawURLEncoding.DecodeString(strings.Split(plain, ".")[1])
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	if claims["exp"].(float64)-claims["iat"].(float64) != 3600 ||
		claims["iss"] != "https://kubernetes.default.svc.cluster.local" {
		t.Errorf("claims: %s", payload)
	}
	if _, err := as(plain).CoreV1().Secrets("shop").List(t.Context(),
		metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a service account without roles lists secrets: %v", err)
	}
	if _, err := whoami(plain[:len(plain)-8] + "AAAAAAAA"); !apierrors.IsUnauthorized(err) {
		t.Errorf("a token with another signature: %v", err)
	}

	for text, spec := range map[string]authenticationv1.TokenRequestSpec{
		`TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes`:            {ExpirationSeconds: new(int64(599))},
		`TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds`: {ExpirationSeconds: new(int64(1<<32 + 1))},
		`cannot bind token to object of type apps/v1, Kind=Deployment`:                                                                                             {BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "x"}},
		`secrets "none" not found`: {
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: "none"},
		},
	} {
		if _, err := request(spec); err == nil || err.Error() != text {
			t.Errorf("got %v, want %s", err, text)
		}
	}

	// A token for another audience does not authenticate here, and a TokenReview must request its audience.
	other := must(authenticationv1.TokenRequestSpec{Audiences: []string{"vault"}})
	if _, err := whoami(other); !apierrors.IsUnauthorized(err) {
		t.Errorf("a token for vault: %v", err)
	}
	review := func(token string, audiences ...string) authenticationv1.TokenReviewStatus {
		t.Helper()
		out, err := admin.AuthenticationV1().TokenReviews().Create(t.Context(),
			&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}},
			metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return out.Status
	}
	if s := review(other, "vault", "bank"); !s.Authenticated || strings.Join(s.Audiences, " ") != "vault" ||
		s.User.Username != "system:serviceaccount:shop:robot" {
		t.Errorf("review for vault: %+v", s)
	}
	if s := review(other, "bank"); s.Authenticated ||
		s.Error != `[invalid bearer token, token audiences ["vault"] is invalid for the target audiences ["bank"]]` {
		t.Errorf("review for bank: %+v", s)
	}
	if s := review("nonsense"); s.Authenticated || s.Error != "invalid bearer token" {
		t.Errorf("review of nonsense: %+v", s)
	}

	// Bound to a secret: it ends with it.
	secret, err := admin.CoreV1().Secrets("shop").Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "anchor"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ref := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: "anchor", UID: "other"}
	if _, err := request(authenticationv1.TokenRequestSpec{BoundObjectRef: ref}); !apierrors.IsConflict(err) {
		t.Errorf("bound to another uid: %v", err)
	}
	ref.UID = secret.UID
	bound := must(authenticationv1.TokenRequestSpec{BoundObjectRef: ref})
	if _, err := whoami(bound); err != nil {
		t.Error(err)
	}
	if err := admin.CoreV1().Secrets("shop").Delete(t.Context(), "anchor", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if s := review(bound); s.Error != "[invalid bearer token, service account token has been invalidated]" {
		t.Errorf("its secret is gone: %+v", s)
	}

	// The recreated account is another one.
	if err := admin.CoreV1().ServiceAccounts("shop").Delete(t.Context(), "robot", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if s := review(plain); s.Error != `[invalid bearer token, serviceaccounts "robot" not found]` {
		t.Errorf("its account is gone: %+v", s)
	}
}

func TestTokenSecrets(t *testing.T) {
	c := controltest.Start(t)
	c.Create(accounts, controltest.Object("v1", "ServiceAccount", "default", "robot"))
	secret := controltest.Object("v1", "Secret", "default", "robot-token")
	secret.Object["type"] = "kubernetes.io/service-account-token"
	secret.SetAnnotations(map[string]string{"kubernetes.io/service-account.name": "robot"})
	c.Create(controltest.Secrets, secret)
	var token string
	c.When(controltest.Secrets, "default", "a token", func(objects map[string]*unstructured.Unstructured) bool {
		data, _, _ := unstructured.NestedStringMap(objects["robot-token"].Object, "data")
		decoded, _ := base64.StdEncoding.DecodeString(data["token"])
		token = string(decoded)
		return token != "" && data["ca.crt"] != "" &&
			data["namespace"] == base64.StdEncoding.EncodeToString([]byte("default")) &&
			objects["robot-token"].GetAnnotations()["kubernetes.io/service-account.uid"] != ""
	})
	config := rest.AnonymousClientConfig(c.Config)
	config.BearerToken = token
	may, err := typed(t, config).AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: "get", Resource: "secrets", Namespace: "default",
				},
			},
		}, metav1.CreateOptions{})
	if err != nil || may.Status.Allowed {
		t.Errorf("with the secret's token: %+v, %v", may, err)
	}
	c.When(controltest.Secrets, "default", "the day of the use",
		func(objects map[string]*unstructured.Unstructured) bool {
			_, err := time.Parse(time.DateOnly,
				objects["robot-token"].GetLabels()["kubernetes.io/legacy-token-last-used"])
			return err == nil
		})
	var warnings []string
	admin := rest.CopyConfig(c.Config)
	admin.WarningHandler = warningFunc(func(text string) { warnings = append(warnings, text) })
	review := func() string {
		r, err := typed(t, admin).AuthenticationV1().TokenReviews().Create(t.Context(),
			&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return r.Status.Error
	}
	if problem := review(); problem != "" || len(warnings) > 0 {
		t.Errorf("%q, %q", problem, warnings)
	}
	merge := func(gvr schema.GroupVersionResource, name, patch string) {
		if _, err := c.In(gvr, "default").Patch(t.Context(), name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	merge(accounts, "robot", `{"secrets":[{"name":"robot-token"}]}`)
	if problem := review(); problem != "" || len(warnings) != 1 ||
		!strings.Contains(warnings[0], "instead of auto-generated secret-based tokens") {
		t.Errorf("made by itself: %q, %q", problem, warnings)
	}
	merge(controltest.Secrets, "robot-token",
		`{"metadata":{"labels":{"kubernetes.io/legacy-token-last-used":"2020-02-02","kubernetes.io/legacy-token-invalid-since":"2021-02-02"}}}`)
	if problem := review(); !strings.Contains(problem,
		"the token in secret default/robot-token for service account default/robot has been marked invalid") {
		t.Errorf("switched off: %q", problem)
	}
	c.When(controltest.Secrets, "default", "the day of the use of what is switched off",
		func(objects map[string]*unstructured.Unstructured) bool {
			return objects["robot-token"].GetLabels()["kubernetes.io/legacy-token-last-used"] > "2020-02-02"
		})
	orphan := controltest.Object("v1", "Secret", "default", "nobody")
	orphan.Object["type"] = "kubernetes.io/service-account-token"
	orphan.SetAnnotations(map[string]string{"kubernetes.io/service-account.name": "nobody"})
	c.Create(controltest.Secrets, orphan)
	c.Until(controltest.Secrets, "default", "robot-token")
	c.Delete(accounts, controltest.Object("v1", "ServiceAccount", "default", "robot"), "")
	c.Until(controltest.Secrets, "default", "")
}
