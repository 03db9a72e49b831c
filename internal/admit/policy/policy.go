// Package policy enforces ValidatingAdmissionPolicies and MutatingAdmissionPolicies.
//
// Its plugins, Validating and Mutating, are part of the admission chain. For each write they check the policies with
// bindings, in the order of their names: the policy's matchConstraints and the binding's matchResources must match
// (admit/match), and the binding selects parameters (params.go). Then the expressions run (admit/expr), once for each
// parameter. The compiled form of a policy is made on first use and cached for each of its revisions (admit/source), so
// a policy acknowledged by this server applies to the next request.
//
// Texts and codes of refusals are Kubernetes'. Plugins are safe for concurrent use and start no goroutine.
//
// Rules: "Validating Admission Policy" and "Mutating Admission Policy" in the Kubernetes documentation, KEP-3488,
// KEP-3962; test/oracle/admit compares with k8s.io/apiserver/pkg/admission/plugin/policy.
package policy

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/expr"
	"github.com/bowsprit/bowsprit/internal/admit/match"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Config holds the dependencies of the plugins. All fields are required except Log and Metrics.
type Config struct {
	View    *watchcache.View
	Catalog *catalog.Catalog
	Authz   authz.Authorizer
	// Read returns a stored object of a resource in one of its versions, as decoded JSON.
	Read func(ctx context.Context, r *catalog.Resource, v *catalog.Version, e *watchcache.Entry) (map[string]any,
		error)
	Log     *slog.Logger
	Metrics *admit.Metrics
}

// collection returns where the view keeps a kind of admissionregistration.k8s.io: where kube-apiserver stores it.
func (c *Config) collection(plural string) *watchcache.Collection {
	return c.View.Collection(plural)
}

func (c *Config) namespaces() admit.Namespaces { return admit.Namespaces{View: c.View} }

// Labels implements match.Namespaces.
func (c *Config) Labels(ctx context.Context, namespace string) (labels.Set, error) {
	return c.namespaces().Labels(ctx, namespace)
}

// hold evaluates the match conditions of a policy that has some.
func (c *Config) hold(
	ctx context.Context, policy string, a *admit.Attributes, conditions []*expr.Expression, in *expr.Input,
) (bool, error) {
	began := time.Now()
	held, err := expr.Hold(ctx, conditions, in)
	if !held.All {
		c.Metrics.ConditionsEvaluated(admit.Conditions{
			// both kinds of policies have this type in Kubernetes
			Name: policy, Kind: "policy", Type: "validate", Operation: a.Operation, Errors: held.Errors,
		}, time.Since(began))
	}
	return held.All, err
}

// seen is one write for the expressions of all policies: each of its forms is made at most once.
type seen struct {
	config    *Config
	a         *admit.Attributes
	authz     expr.Authorizer
	own       form                       // as in the request
	forms     map[*catalog.Version]*form // in other versions
	namespace map[string]any             // nil until needed
}

// form is the write in one version.
type form struct {
	object, old map[string]any
	err         error
}

func (c *Config) see(a *admit.Attributes) *seen {
	return &seen{config: c, a: a, own: form{object: a.Object, old: a.Old}, authz: expr.Authorizer{
		Authz: c.Authz, User: a.User, Subresource: a.Subresource, Namespace: a.Namespace, Name: a.Name,
		Resource: match.AsRequested(a).Resource,
	}}
}

// in returns the objects in another version.
func (s *seen) in(ctx context.Context, v *catalog.Version) *form {
	if v == s.a.Version {
		return &s.own
	}
	f := s.forms[v]
	if f == nil {
		f = &form{}
		f.object, f.old, f.err = s.a.In(ctx, v)
		if s.forms == nil {
			s.forms = map[*catalog.Version]*form{}
		}
		s.forms[v] = f
	}
	return f
}

// namespaceObject returns the object's namespace for expressions: nil for cluster-scoped objects, and for namespaces
// themselves.
func (s *seen) namespaceObject(ctx context.Context) (map[string]any, error) {
	if s.a.Namespace == "" || s.a.Resource.IsNamespace() || s.namespace != nil {
		return s.namespace, nil
	}
	obj, err := s.config.namespaces().Object(ctx, s.a.Namespace)
	if err != nil {
		return nil, err
	}
	meta, _ := obj["metadata"].(map[string]any)
	visible := map[string]any{}
	for _, key := range []string{
		"name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
		"deletionTimestamp",
		"deletionGracePeriodSeconds", "labels", "annotations", "finalizers",
	} {
		if v, ok := meta[key]; ok {
			visible[key] = v
		}
	}
	s.namespace = map[string]any{"metadata": visible, "spec": orEmpty(obj["spec"]), "status": orEmpty(obj["status"])}
	return s.namespace, nil
}

func orEmpty(v any) any {
	if v == nil {
		return map[string]any{}
	}
	return v
}

// input returns the variables of a policy's expressions for one parameter (nil: none).
func (s *seen) input(f *form, t match.Target, params map[string]any) *expr.Input {
	return &expr.Input{
		Object: f.object, OldObject: f.old, Params: params, Authorizer: &s.authz,
		Request: func() map[string]any { return expr.Request(s.a, t.Resource, t.Kind) },
	}
}
