package extension_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/extension"
	"github.com/bowsprit/bowsprit/test/vessels"
	"github.com/bowsprit/bowsprit/testserver"
)

// eventually waits for the effect of a change elsewhere.
func eventually(t *testing.T, desc string, is func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 2*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			last = is(ctx)
			return last == nil, nil
		})
	if err != nil {
		t.Fatalf("%s: %v: %v", desc, err, last)
	}
}

// TestAdmissionOfFront checks that policies and webhooks of the server in front decide about objects of the server
// behind it, from their creation to their deletion.
func TestAdmissionOfFront(t *testing.T) {
	t.Parallel()
	front := testserver.Start(t)
	serveBehind(t, front.RESTConfig())
	client, err := kubernetes.NewForConfig(front.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	ships := dynamicOf(t, front).Resource(vesselsGVR).Namespace("default")
	dry := func(ctx context.Context, captain string) error {
		_, err := ships.Create(ctx, object("dry", captain), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	rule := admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{vessels.Group}, APIVersions: []string{"v1"}, Resources: []string{"vessels"},
		},
	}
	policies := client.AdmissionregistrationV1()
	if _, err := policies.ValidatingAdmissionPolicies().Create(t.Context(),
		&admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "no-kidd"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: rule}},
				},
				Validations: []admissionregistrationv1.Validation{{
					Expression: "object.spec.captain != 'Kidd'", Message: "no pirates",
				}},
			},
		}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := policies.ValidatingAdmissionPolicyBindings().Create(t.Context(),
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "no-kidd"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: "no-kidd", ValidationActions: []admissionregistrationv1.ValidationAction{"Deny"},
			},
		}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	refused := func(captain string) func(context.Context) error {
		return func(ctx context.Context) error {
			err := dry(ctx, captain)
			if err == nil {
				return io.EOF // not refused yet
			}
			if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
				return err
			}
			return nil
		}
	}
	eventually(t, "the policy refuses", refused("Kidd"))
	if err := dry(t.Context(), "Cook"); err != nil {
		t.Error(err)
	}
	if err := policies.ValidatingAdmissionPolicyBindings().Delete(t.Context(), "no-kidd",
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the policy refuses no more", func(ctx context.Context) error { return dry(ctx, "Kidd") })

	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: false,
			Result: &metav1.Status{Code: http.StatusForbidden, Message: "the hook says no"}}
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(hook.Close)
	none, url := admissionregistrationv1.SideEffectClassNone, hook.URL
	if _, err := policies.ValidatingWebhookConfigurations().Create(t.Context(),
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "no"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "no.example.com", Rules: []admissionregistrationv1.RuleWithOperations{rule}, SideEffects: &none,
				AdmissionReviewVersions: []string{"v1"},
				ClientConfig: admissionregistrationv1.WebhookClientConfig{
					URL: &url,
					CABundle: pem.EncodeToMemory(&pem.Block{
						Type: "CERTIFICATE", Bytes: hook.Certificate().Raw,
					}),
				},
			}},
		}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the webhook refuses", refused("Cook"))
}

// TestRestart lets an informer follow objects of a server behind over its restarts. With a data directory the objects
// stay, without one they disappear. The authority of its certificate changes each time.
func TestRestart(t *testing.T) {
	t.Parallel()
	for _, persistent := range []bool{true, false} {
		t.Run(map[bool]string{true: "data directory", false: "memory"}[persistent], func(t *testing.T) {
			t.Parallel()
			front := testserver.Start(t)
			config := bowsprit.Config{}
			if persistent {
				config.DataDir = t.TempDir()
			}
			_, stop := runBehind(t, front.RESTConfig(), config)
			vessels.WaitAvailable(t, front.RESTConfig())
			client := dynamicOf(t, front)
			ships := client.Resource(vesselsGVR).Namespace("default")
			created(t, ships, "before", "Cook")
			informer := dynamicinformer.NewFilteredDynamicInformer(client, vesselsGVR, metav1.NamespaceAll, 0,
				cache.Indexers{}, nil).Informer()
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); informer.RunWithContext(ctx) }()
			defer func() { cancel(); <-ended }()
			if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
				t.Fatal("the informer does not fill")
			}
			for _, name := range []string{"second", "third"} {
				stop()
				_, stop = runBehind(t, front.RESTConfig(), config)
				eventually(t, "a write after the restart", func(ctx context.Context) error {
					_, err := ships.Create(ctx, object(name, "Cook"), metav1.CreateOptions{})
					if apierrors.IsAlreadyExists(err) {
						return nil // the response of an earlier attempt was lost
					}
					return err
				})
				want := 1
				if persistent {
					want = map[string]int{"second": 2, "third": 3}[name]
				}
				eventually(t, "the informer shows what is there", func(context.Context) error {
					if _, ok, _ := informer.GetStore().GetByKey("default/" + name); !ok ||
						len(informer.GetStore().ListKeys()) != want {
						return io.ErrUnexpectedEOF
					}
					return nil
				})
			}
		})
	}
}

// runBehind runs a server behind front until stop is called.
func runBehind(t *testing.T, front *rest.Config, config bowsprit.Config) (server *bowsprit.Server, stop func()) {
	t.Helper()
	server, err := extension.Server{
		Kinds: vessels.Kinds(), Front: front, Config: config,
		Register: &extension.Registration{Namespace: "default", Service: "vessels", Address: "localhost"},
	}.New()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return server, stop
}
