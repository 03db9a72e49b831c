package review_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/auth/serviceaccount"
	"github.com/bowsprit/bowsprit/internal/feature/review"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// attesting lets the account "robot" attest some API groups, and the account "server" all.
type attesting struct{ authz.Authorizer }

func (attesting) Authorize(_ context.Context, u user.Info, info *request.Info) (authz.Decision, error) {
	may := info.Name != "*" && info.Name != "other" && strings.HasSuffix(u.GetName(), ":robot") ||
		strings.HasSuffix(u.GetName(), ":server")
	if may && info.Verb == "attest" && info.Group == "authentication.k8s.io" &&
		info.Resource == "admissionReviewAPIGroups" && info.Namespace == "" {
		return authz.Decision{Verdict: authz.Allow}, nil
	}
	return authz.Decision{}, nil
}

// TestWebhookTokens requests tokens that are bound to configurations of webhooks. The errors are Kubernetes'.
func TestWebhookTokens(t *testing.T) {
	t.Parallel()
	s := parttest.Start(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}))
	s.Time = time.Now()
	s.Create(ref.Namespaces.GroupResource(), "", `{"metadata":{"name":"n"}}`)
	for _, name := range []string{"robot", "server"} {
		s.Create(ref.ServiceAccounts.GroupResource(), "n", fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
	}
	const webhooks = `{"metadata":{"name":"w"},"webhooks":[{"name":"a.example.com","sideEffects":"None",
		"admissionReviewVersions":["v1"],"clientConfig":{"url":"https://a.example.com"},"rules":[{"apiGroups":["apps"],
		"apiVersions":["v1"],"operations":["*"],"resources":["*"]}]},{"name":"b.example.com","sideEffects":"None",
		"admissionReviewVersions":["v1"],"clientConfig":{"service":{"namespace":"n","name":"s","path":"/p"}},"rules":[{
		"apiGroups":["*"],"apiVersions":["v1"],"operations":["*"],"resources":["*"]}]}]}`
	s.Create(ref.ValidatingWebhookConfigurations.GroupResource(), "", webhooks)
	s.Create(ref.MutatingWebhookConfigurations.GroupResource(), "", webhooks)
	keys, err := serviceaccount.OpenKeys(serviceaccount.KeyConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	c := serviceaccount.Config{Keys: keys, View: s.View, Now: s.Now, Audiences: []string{"us"},
		ValidatingWebhooks: ref.ValidatingWebhookConfigurations.Prefix,
		MutatingWebhooks:   ref.MutatingWebhookConfigurations.Prefix}
	tokens := serviceaccount.New(c)
	answers := func(on bool) verb.Answer {
		return review.Answers(review.Config{Tokens: tokens, View: s.View, Now: s.Now, NewUID: s.NewUID,
			Authorizer: attesting{}, WebhookTokens: on})["serviceaccounts/token"]
	}
	issue := func(on bool, account, spec string) (string, string, error) {
		call := &verb.Call{Namespace: "n", Name: account}
		out, err := answers(on)(t.Context(), call, decode(t, "{spec: {expirationSeconds: 3600, "+spec+"}}"),
			func(object.Object) error { return nil })
		return object.String(out, "status", "token"), object.String(out, "status", "expirationTimestamp"), err
	}
	bound := func(kind string) string {
		return "boundObjectRef: {apiVersion: admissionregistration.k8s.io/v1, kind: " + kind +
			"WebhookConfiguration, name: w}"
	}
	const apps = ", attestations: {admissionReviewAPIGroups: [apps]}"
	const url = ", audiences: ['https://a.example.com']"
	for _, tc := range []struct{ account, spec, refused string }{
		{"robot", bound("Validating") + url + apps, ""},
		{"robot", bound("Mutating") + url + apps, ""},
		{"robot", bound("Mutating") + ", audiences: ['https://s.n.svc:443/p']" + apps, ""},
		{"server", bound("Validating") + url + ", attestations: {admissionReviewAPIGroups: ['*']}", ""},
		{"server", bound("Validating") + ", audiences: [any], attestations: {admissionReviewAPIGroups: ['*']}", ""},

		{"robot", bound("Validating") + ", audiences: ['https://s.n.svc:443/p/']" + apps,
			`serviceaccounts/token "robot" is forbidden: token request denied`},
		{"robot", bound("Validating") + url + ", attestations: {admissionReviewAPIGroups: [batch]}",
			`serviceaccounts/token "robot" is forbidden: token request denied`},
		{"robot", strings.Replace(bound("Validating"), "name: w", "name: none", 1) + url + apps,
			`serviceaccounts/token "robot" is forbidden: token request denied`},
		{"robot", strings.Replace(bound("Mutating"), "name: w", "name: w, uid: x", 1) + url + apps,
			`MutatingWebhookConfiguration.admissionregistration.k8s.io "w": the UID in the bound object reference (x) does not`},
		{"robot", bound("Validating") + url + ", attestations: {admissionReviewAPIGroups: [other]}",
			`admissionReviewAPIGroups.authentication.k8s.io "other" is forbidden: User "system:serviceaccount:n:robot" ` +
				`cannot attest resource "admissionReviewAPIGroups" in API group "authentication.k8s.io" at the cluster scope`},
		{"robot", bound("Validating") + ", audiences: [us]" + apps,
			"api server audiences are invalid for webhook token requests"},
		{"robot", bound("Validating") + ", audiences: [a, b]" + apps,
			`spec.audiences: Invalid value: ["a","b"]: must be length 1 when bound to a webhook config`},
		{"robot", bound("Validating") + url,
			"spec.attestations: Invalid value: null: webhook bound requests require exactly one"},
		{"robot", bound("Validating") + url + ", attestations: {b: [apps]}",
			`spec.attestations[b]: Unsupported value: "b": supported values: "admissionReviewAPIGroups"`},
		{"robot", bound("Validating") + url + ", attestations: {admissionReviewAPIGroups: [a, b]}",
			`spec.attestations[admissionReviewAPIGroups]: Invalid value: ["a","b"]: must specify a single value`},
		{"robot", bound("Validating") + url + ", attestations: {admissionReviewAPIGroups: ['']}",
			`spec.attestations[admissionReviewAPIGroups][0]: Invalid value: "": may not be an empty string`},
		{"robot", bound("Validating") + url + ", attestations: {admissionReviewAPIGroups: [A]}",
			`spec.attestations[admissionReviewAPIGroups][0]: Invalid value: "A": must specify a valid API Group: `},
		{"robot", "audiences: [us]" + apps,
			`spec.attestations: Invalid value: {"admissionReviewAPIGroups":["apps"]}: attestations may only be specified`},
	} {
		token, expires, err := issue(true, tc.account, tc.spec)
		if tc.refused != "" {
			if err == nil || !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("%s: %v, want %s", tc.spec, err, tc.refused)
			}
			continue
		}
		if want := s.Now().Add(10 * time.Minute).UTC().Format(time.RFC3339); err != nil || expires != want {
			t.Errorf("%s: %v, expires at %s, want %s", tc.spec, err, expires, want)
		}
		u, _, err := tokens.Authenticate(t.Context(), token,
			[]string{"https://a.example.com", "https://s.n.svc:443/p", "any"})
		if err != nil || len(u.GetExtra()["attestation.authentication.kubernetes.io/admissionReviewAPIGroups"]) != 1 {
			t.Errorf("%s: %v, %v", tc.spec, u, err)
		}
	}

	if _, _, err := issue(false, "robot", bound("Validating")+url+apps); !apierrors.IsBadRequest(err) ||
		!strings.Contains(err.Error(), "(feature gate APIServerWebhookAuthenticationToken is disabled)") {
		t.Errorf("without the feature: %v", err)
	}
	token, _, err := issue(true, "robot", bound("Validating")+url+apps)
	if err != nil {
		t.Fatal(err)
	}
	off := c
	off.ValidatingWebhooks, off.MutatingWebhooks = "", ""
	audience := []string{"https://a.example.com"}
	if u, _, err := serviceaccount.New(off).Authenticate(t.Context(), token, audience); err == nil {
		t.Errorf("without the feature the token is valid: %v", u)
	}
	s.Delete(ref.ValidatingWebhookConfigurations.GroupResource(), "", "w")
	if u, _, err := tokens.Authenticate(t.Context(), token, audience); err == nil ||
		err.Error() != "service account token has been invalidated" {
		t.Errorf("after the configuration: %v, %v", u, err)
	}
}
