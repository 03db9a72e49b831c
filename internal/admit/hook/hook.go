// Package hook calls admission webhooks.
//
// Its plugins, Mutating and Validating, are part of the admission chain. For each write they check the webhooks of all
// configurations, first in files (admit/manifest) and then stored, in the order of their names: the webhook must match
// the write (admit/match) and its match conditions must hold (admit/expr). Then package webhook sends an
// AdmissionReview. Mutating webhooks are called one after another, each with the changes of the previous ones;
// validating webhooks are called concurrently.
//
// The goroutines of Validating end before Validate returns; nothing else runs in the background. Plugins are safe for
// concurrent use. Texts and codes of refusals are Kubernetes'.
//
// Rules: "Dynamic Admission Control" in the Kubernetes documentation, KEP-2041 (reinvocation), KEP-3716 (match
// conditions); test/oracle/admit compares with k8s.io/apiserver/pkg/admission/plugin/webhook.
package hook

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/expr"
	"github.com/bowsprit/bowsprit/internal/admit/manifest"
	"github.com/bowsprit/bowsprit/internal/admit/match"
	"github.com/bowsprit/bowsprit/internal/admit/registration"
	"github.com/bowsprit/bowsprit/internal/admit/source"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/net/webhook"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Config holds the dependencies of the plugins. All fields are required except Manifests, Credentials,
// Log and Metrics.
type Config struct {
	View   *watchcache.View
	Authz  authz.Authorizer
	Client *webhook.Client
	// Manifests are the webhooks in files, which are called before the stored ones; nil means none.
	Manifests *manifest.Source[manifest.Webhooks]
	// Reviews also sends reviews of authentication and authorization to webhooks, as releases before 1.37 do.
	Reviews bool
	// Credentials authenticate the server to webhooks; nil means none.
	Credentials *webhook.Credentials
	// NewUID returns a fresh identifier for each AdmissionReview.
	NewUID  func() string
	Log     *slog.Logger
	Metrics *admit.Metrics
}

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// The halves of admission, as metrics call them.
const (
	admitting  = "admit"
	validating = "validating"
)

// hook is one webhook of a configuration.
type hook struct {
	registration.Hook
	id            string // unique among all webhooks
	configuration string
	half          string // half of admission, as in metrics: "admit" or "validating"
	criteria      *match.Criteria
	conditions    func() []*expr.Expression
	target        webhook.Target
}

// newHooks compiles the webhooks of a configuration. space begins their ids; configurations in files and in the API may
// have the same name.
func newHooks(half, space, configuration string, list []registration.Hook) []*hook {
	var out []*hook
	for i, h := range list {
		w := &hook{
			Hook: h, id: fmt.Sprintf("%s%s/%s/%d", space, configuration, h.Name, i), configuration: configuration,
			half:     half,
			criteria: match.Webhook(h.Rules, h.MatchPolicy, h.NamespaceSelector, h.ObjectSelector),
			target:   webhook.Target{URL: ptr.Deref(h.ClientConfig.URL, ""), CABundle: h.ClientConfig.CABundle},
		}
		w.conditions = sync.OnceValue(func() (compiled []*expr.Expression) {
			for _, m := range h.MatchConditions {
				compiled = append(compiled,
					new(expr.Compiler).Compile(m.Expression, expr.Scope{Authorizer: true}, expr.Stored, expr.Bool))
			}
			return compiled
		})
		if s := h.ClientConfig.Service; s != nil {
			w.target.Service = &webhook.Service{
				Namespace: s.Namespace, Name: s.Name, Path: ptr.Deref(s.Path, ""), Port: ptr.Deref(s.Port, 443),
			}
		}
		out = append(out, w)
	}
	return out
}

// hooks holds all webhooks of one kind of configuration: from files, and from the view.
type hooks struct {
	half           string
	configurations *source.Source[[]*hook]
	manifests      source.Derived[manifest.Webhooks, *source.List[*hook]]
	all            source.Joined[*hook, []*hook, []*hook]
}

func newHookSource(
	c *Config, plural, half string, read func(obj map[string]any) (string, []registration.Hook, error),
) *hooks {
	return &hooks{half: half,
		configurations: source.New(c.View.Collection(plural), func(e *watchcache.Entry) ([]*hook, bool) {
			v, err := codec.DecodeJSON(e.JSON())
			obj, ok := v.(map[string]any)
			if err != nil || !ok {
				return nil, false
			}
			registration.DefaultWebhooks(obj, half == admitting)
			name, list, err := read(obj)
			if err != nil {
				c.Log.Warn("a stored webhook configuration cannot be read", "name", e.Name, "err", err)
				return nil, false
			}
			return newHooks(half, "", name, list), len(list) > 0
		})}
}

// concerned returns the webhooks that may match a write: first the ones in files, then the stored ones, both in the
// order of their configurations' names. Only webhooks in files match the configuration of admission itself: no client
// can make a mistake in them that it could then not repair.
func (s *hooks) concerned(c *Config, a *admit.Attributes) []*hook {
	manifests := s.manifests.Get(c.Manifests.List(), func(configurations []manifest.Webhooks) *source.List[*hook] {
		var all []*hook
		for _, m := range configurations {
			all = append(all, newHooks(s.half, "manifest/", m.Name, m.Hooks)...)
		}
		return source.Fixed(all)
	})
	all := s.all.Get(manifests, s.configurations.List(), func(manifests []*hook, stored [][]*hook) []*hook {
		all := slices.Concat(manifests, slices.Concat(stored...))
		names := make(map[string]bool, len(all))
		for _, h := range all {
			names[h.Name] = true
		}
		c.Metrics.KeepWebhooks(s.half, names)
		return all
	})
	switch {
	case len(all) == 0 || !c.Reviews && match.IsReview(a.Resource):
		return nil
	case match.ExemptFromWebhooks(a.Resource):
		return manifests.Items
	}
	return all
}

func readMutating(obj map[string]any) (string, []registration.Hook, error) {
	var c admissionregistrationv1.MutatingWebhookConfiguration
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, &c)
	return c.Name, registration.MutatingHooks(&c), err
}

func readValidating(obj map[string]any) (string, []registration.Hook, error) {
	var c admissionregistrationv1.ValidatingWebhookConfiguration
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, &c)
	return c.Name, registration.ValidatingHooks(&c), err
}

// wants reports whether the webhook matches a write, and in which form it receives the objects. An error is for the
// client.
func (h *hook) wants(ctx context.Context, c *Config, a *admit.Attributes) (t match.Target, ok bool, err error) {
	t, ok, err = h.criteria.Match(ctx, a, admit.Namespaces{View: c.View})
	if err != nil || !ok || len(h.MatchConditions) == 0 {
		return t, ok, err
	}
	obj, old, err := a.In(ctx, t.Version)
	if err != nil {
		return t, false, apierrors.NewInternalError(err)
	}
	own, began := match.AsRequested(a).Resource, time.Now()
	held, err := expr.Hold(ctx, h.conditions(), &expr.Input{
		Object: obj, OldObject: old,
		Request: func() map[string]any { return expr.Request(a, own, t.Kind) },
		Authorizer: &expr.Authorizer{
			Authz: c.Authz, User: a.User, Resource: own, Subresource: a.Subresource, Namespace: a.Namespace,
			Name: a.Name,
		},
	})
	if held.All {
		return t, true, nil
	}
	refuses := err != nil && !h.ignoresFailures()
	c.Metrics.ConditionsEvaluated(admit.Conditions{
		Name: h.Name, Kind: "webhook", Type: h.half, Operation: a.Operation, Errors: held.Errors, Excluded: !refuses,
	}, time.Since(began))
	if refuses {
		return t, false, apierrors.NewForbidden(a.GroupResource(), a.Name, err)
	}
	return t, false, nil
}

func (h *hook) ignoresFailures() bool {
	return h.FailurePolicy != nil && *h.FailurePolicy == admissionregistrationv1.Ignore
}

// timeout returns the time limit of a call: the smaller of the webhook's and the request's remaining time.
func (h *hook) timeout(ctx context.Context) (limit time.Duration, set bool) {
	if h.TimeoutSeconds != nil {
		limit, set = time.Duration(*h.TimeoutSeconds)*time.Second, true
	}
	if deadline, ok := ctx.Deadline(); ok {
		if left := time.Until(deadline); !set || left < limit {
			limit, set = left, true
		}
	}
	return limit, set
}
