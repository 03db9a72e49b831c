package admit_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/hook"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/net/webhook"
)

// recorder is a webhook with a response for each path. It records the requests, without the uids.
type recorder struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
}

func record(t *testing.T) *recorder {
	r := &recorder{}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var review map[string]any
		if err := json.NewDecoder(q.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		request := review["request"].(map[string]any)
		uid := request["uid"]
		delete(request, "uid")
		text, _ := json.Marshal(request)
		r.mu.Lock()
		r.requests = append(r.requests,
			q.URL.Path+" "+q.URL.RawQuery+" "+review["apiVersion"].(string)+" "+string(text))
		r.mu.Unlock()
		response := map[string]any{"uid": uid, "allowed": true}
		name, behaviour, _ := strings.Cut(strings.TrimPrefix(q.URL.Path, "/"), "/")
		labels, _ := func() (map[string]any, bool) {
			obj, _ := request["object"].(map[string]any)
			meta, _ := obj["metadata"].(map[string]any)
			l, ok := meta["labels"].(map[string]any)
			return l, ok
		}()
		switch behaviour {
		case "deny":
			response["allowed"], response["status"] = false,
				map[string]any{"message": name + " says no", "code": 403, "reason": "Forbidden"}
		case "warn":
			response["warnings"], response["auditAnnotations"] = []string{name + " warns"}, map[string]string{"k": name}
		case "count":
			if request["object"] != nil {
				response["patchType"], response["patch"] = "JSONPatch",
					[]byte(fmt.Sprintf(`[{"op":"add","path":"/metadata/labels/%s","value":"%d"}]`, name, len(labels)))
			}
		case "color":
			if request["object"] != nil {
				response["patchType"], response["patch"] = "JSONPatch",
					[]byte(`[{"op":"add","path":"/metadata/labels/color","value":"red"}]`)
			}
		case "patch":
			response["patchType"], response["patch"] = "JSONPatch",
				[]byte(`[{"op":"remove","path":"/metadata/labels/size"}]`)
		case "fail":
			w.WriteHeader(http.StatusInternalServerError)
			return
		case "wrong":
			response["uid"] = "wrong"
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response,
		})
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	requests := r.requests
	r.requests = nil
	return requests
}

// randomHook returns the common fields of both kinds of webhooks. server answers.
func (r *recorder) randomHook(
	rnd *rand.Rand, name string, behaviours ...string,
) admissionregistrationv1.MutatingWebhook {
	h := admissionregistrationv1.MutatingWebhook{
		Name: name + ".example.com",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			URL:      ptr.To(r.URL + "/" + name + "/" + pick(rnd, behaviours...)),
			CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw}),
		},
		FailurePolicy:     randomFailure(rnd),
		MatchPolicy:       ptr.To(pick(rnd, admissionregistrationv1.Exact, admissionregistrationv1.Equivalent)),
		NamespaceSelector: randomSelector(rnd), ObjectSelector: randomSelector(rnd),
		SideEffects: ptr.To(pick(rnd, admissionregistrationv1.SideEffectClassNone,
			admissionregistrationv1.SideEffectClassNoneOnDryRun, admissionregistrationv1.SideEffectClassSome)),
		TimeoutSeconds:          ptr.To(int32(10)),
		AdmissionReviewVersions: pick(rnd, []string{"v1"}, []string{"v1beta1", "v1"}, []string{"v9", "v1"}),
		ReinvocationPolicy: ptr.To(pick(rnd, admissionregistrationv1.NeverReinvocationPolicy,
			admissionregistrationv1.IfNeededReinvocationPolicy)),
		MatchConditions: randomConditions(rnd, true),
	}
	for range 1 + rnd.IntN(2) {
		h.Rules = append(h.Rules, randomRule(rnd))
	}
	return h
}

// upstreamPlugin has the methods that Kubernetes' plugins need to work without a cluster.
type upstreamPlugin interface {
	SetExternalKubeClientSet(kubernetes.Interface)
	SetExternalKubeInformerFactory(informers.SharedInformerFactory)
	ValidateInitialization() error
	SetReadyFunc(admission.ReadyFunc)
}

func ready(t *testing.T, p upstreamPlugin, f informers.SharedInformerFactory) {
	t.Helper()
	for _, ns := range namespaces() {
		_ = f.Core().V1().Namespaces().Informer().GetIndexer().Add(ns)
	}
	p.SetExternalKubeClientSet((*kubernetes.Clientset)(nil))
	p.SetExternalKubeInformerFactory(f)
	if err := p.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	p.SetReadyFunc(func() bool { return true })
}

func hookConfig(t *testing.T, objects map[string]any) (hook.Config, *catalog.Catalog) {
	client := webhook.New(webhook.Options{})
	t.Cleanup(client.Close)
	return hook.Config{
		View: view(t, objects), Authz: authz.Union{}, Client: client,
		NewUID: func() string { return "705ab4f5-6393-11e8-b7cc-42010a800002" },
	}, catalog.New(resources()...)
}

func rounds(t *testing.T) (int, int) {
	if testing.Short() {
		return 5, 20
	}
	return 30, 30
}

func TestMutatingWebhooks(t *testing.T) {
	server := record(t)
	n, writes := rounds(t)
	called := 0
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		objects := map[string]any{}
		f := informers.NewSharedInformerFactory(nil, 0)
		for _, name := range []string{"z", "a", "m"} {
			c := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
			for i := range 1 + r.IntN(2) {
				c.Webhooks = append(c.Webhooks,
					server.randomHook(r, fmt.Sprintf("%s%d", name, i), "count", "count", "color", "color", "warn",
						"deny", "fail", "patch", "wrong"))
			}
			objects["mutatingwebhookconfigurations/"+name] = c
			_ = f.Admissionregistration().V1().MutatingWebhookConfigurations().Informer().GetIndexer().Add(c)
		}
		upstream, err := mutating.NewMutatingWebhook(nil)
		if err != nil {
			t.Fatal(err)
		}
		upstream.SetUnconditionalAuthorizer(authorizerfactory.NewPrivilegedGroups("system:masters"))
		ready(t, upstream, f)
		config, kinds := hookConfig(t, objects)
		counters, metrics := count(t)
		config.Metrics = metrics
		ours := admit.Chain{Plugins: []admit.Plugin{hook.NewMutating(config)}}
		for range writes {
			w := randomWrite(r)
			got := w.ask(kinds, ours.Mutate)
			requests := server.take()
			want := w.callUpstream(func(ctx context.Context, a admission.Attributes,
				o admission.ObjectInterfaces) error {
				if err := upstream.Admit(ctx, a, o); err != nil || !a.GetReinvocationContext().ShouldReinvoke() {
					return err
				}
				a.GetReinvocationContext().SetIsReinvoke()
				return upstream.Admit(ctx, a, o)
			})
			compare(t, seed, w, got, want, requests, server.take(), &called)
		}
		counters.compare(t, seed)
	}
	if called < n {
		t.Errorf("only %d calls", called)
	}
}

func TestValidatingWebhooks(t *testing.T) {
	server := record(t)
	n, writes := rounds(t)
	called := 0
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		objects := map[string]any{}
		f := informers.NewSharedInformerFactory(nil, 0)
		// of one webhook: in Kubernetes the first of two is random
		bad := pick(r, "deny", "fail", "wrong", "warn", "patch")
		for _, name := range []string{"z", "a", "m"} {
			c := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
			for i := range 1 + r.IntN(2) {
				behaviour := "allow"
				if name == "m" && i == 0 {
					behaviour = bad
				}
				m := server.randomHook(r, fmt.Sprintf("%s%d", name, i), behaviour)
				m.SideEffects = ptr.To(admissionregistrationv1.SideEffectClassNone)
				c.Webhooks = append(c.Webhooks, admissionregistrationv1.ValidatingWebhook{
					Name: m.Name, ClientConfig: m.ClientConfig, Rules: m.Rules, FailurePolicy: m.FailurePolicy,
					MatchPolicy: m.MatchPolicy, NamespaceSelector: m.NamespaceSelector,
					ObjectSelector: m.ObjectSelector, SideEffects: m.SideEffects, TimeoutSeconds: m.TimeoutSeconds,
					AdmissionReviewVersions: m.AdmissionReviewVersions, MatchConditions: m.MatchConditions,
				})
			}
			objects["validatingwebhookconfigurations/"+name] = c
			_ = f.Admissionregistration().V1().ValidatingWebhookConfigurations().Informer().GetIndexer().Add(c)
		}
		upstream, err := validating.NewValidatingAdmissionWebhook(nil)
		if err != nil {
			t.Fatal(err)
		}
		upstream.SetUnconditionalAuthorizer(authorizerfactory.NewPrivilegedGroups("system:masters"))
		ready(t, upstream, f)
		config, kinds := hookConfig(t, objects)
		counters, metrics := count(t)
		config.Metrics = metrics
		ours := hook.NewValidating(config)
		for range writes {
			w := randomWrite(r)
			got := w.ask(kinds, ours.Validate)
			requests := server.take()
			want := w.callUpstream(upstream.Validate)
			wanted := server.take()
			slices.Sort(requests) // the webhooks are called in parallel
			slices.Sort(wanted)
			compare(t, seed, w, got, want, requests, wanted, &called)
		}
		counters.compare(t, seed)
	}
	if called < n {
		t.Errorf("only %d calls", called)
	}
}

// uid is the identifier of a review, in errors.
var uid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

func compare(t *testing.T, seed int, w write, got, want response, requests, wanted []string, called *int) {
	t.Helper()
	*called += len(wanted)
	if g, u := strings.Join(requests, "\n"), strings.Join(wanted, "\n"); g != u {
		t.Fatalf("seed %d, %+v:\nours asks\n%s\nKubernetes'\n%s", seed, w, g, u)
	}
	if want.Status != nil {
		got.Object, want.Object = nil, nil // the object after a refusal does not matter
	}
	if g, u := uid.ReplaceAllString(got.String(), "UID"), uid.ReplaceAllString(want.String(), "UID"); g != u {
		t.Fatalf("seed %d, %+v:\nours %s\nKubernetes' %s", seed, w, g, u)
	}
}
