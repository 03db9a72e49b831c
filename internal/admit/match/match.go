// Package match decides whether a policy, a binding or a webhook applies to a write.
//
// It stands between the admission plugins and package admit: a plugin compiles the rules, selectors and match policy of
// a configuration object to a Criteria once, and matches every write against it. A Criteria is immutable and safe for
// concurrent use; a write that does not match costs no allocation.
//
// Rules: "Matching requests" in the Kubernetes documentation of admission webhooks; test/oracle/admit compares with
// k8s.io/apiserver/pkg/admission/plugin/policy/matching.
package match

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// Target is the form of the objects that the matched webhook or policy expects.
type Target struct {
	Resource schema.GroupVersionResource
	Kind     schema.GroupVersionKind
	Version  *catalog.Version
}

// Namespaces returns the labels of a namespace, or a NotFound error.
type Namespaces interface {
	Labels(ctx context.Context, namespace string) (labels.Set, error)
}

// Criteria selects writes.
type Criteria struct {
	rules, exclude []admissionregistrationv1.NamedRuleWithOperations
	everything     bool // without rules: for a binding
	equivalent     bool
	namespaces     selector
	objects        selector
}

// selector is a label selector, or the error of an invalid one, which counts only if everything else matches.
type selector struct {
	labels.Selector
	err error
}

func compile(s *metav1.LabelSelector) selector {
	compiled, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return selector{err: apierrors.NewInternalError(err)}
	}
	return selector{Selector: compiled}
}

// Resources compiles the matchConstraints of a policy or the matchResources of a binding. A nil m, or one without
// rules, matches everything; defaults are set. The policy's failure policy decides about an error.
func Resources(m *admissionregistrationv1.MatchResources) (*Criteria, error) {
	if m == nil {
		return &Criteria{
			everything: true, namespaces: selector{Selector: labels.Everything()},
			objects: selector{Selector: labels.Everything()},
		}, nil
	}
	for _, s := range []struct {
		name string
		is   *metav1.LabelSelector
	}{{"namespace", m.NamespaceSelector}, {"object", m.ObjectSelector}} {
		if s.is == nil {
			return nil,
				fmt.Errorf("a nil %s selector was passed, please ensure selectors are initialized properly", s.name)
		}
	}
	return &Criteria{
		rules: m.ResourceRules, exclude: m.ExcludeResourceRules, everything: len(m.ResourceRules) == 0,
		equivalent: isEquivalent(m.MatchPolicy),
		namespaces: compile(m.NamespaceSelector), objects: compile(m.ObjectSelector),
	}, nil
}

// Webhook compiles a webhook's selection of writes. Without rules it matches nothing.
func Webhook(
	rules []admissionregistrationv1.RuleWithOperations, policy *admissionregistrationv1.MatchPolicyType, namespaces,
	objects *metav1.LabelSelector,
) *Criteria {
	c := &Criteria{equivalent: isEquivalent(policy), namespaces: compile(namespaces), objects: compile(objects)}
	for _, r := range rules {
		c.rules = append(c.rules, admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: r})
	}
	return c
}

func isEquivalent(p *admissionregistrationv1.MatchPolicyType) bool {
	return p != nil && *p == admissionregistrationv1.Equivalent
}

// Match reports whether the criteria match a write, and the form of its objects. An error means that the rules match
// but the selectors could not be evaluated: a *apierrors.StatusError.
func (c *Criteria) Match(ctx context.Context, a *admit.Attributes, ns Namespaces) (t Target, ok bool, err error) {
	// The rules come first, because they are cheapest; an error in a selector counts only if they match.
	if _, excluded := c.matchRules(c.exclude, a); excluded {
		return Target{}, false, nil
	}
	if c.everything {
		t = AsRequested(a)
	} else if t, ok = c.matchRules(c.rules, a); !ok {
		return Target{}, false, nil
	}
	inNamespace, nsErr := c.matchNamespace(ctx, a, ns)
	if nsErr == nil && !inNamespace {
		return Target{}, false, nil
	}
	labelled, objErr := c.matchObject(a)
	switch {
	case objErr == nil && !labelled:
		return Target{}, false, nil
	case nsErr != nil:
		return Target{}, false, nsErr
	case objErr != nil:
		return Target{}, false, objErr
	}
	return t, true, nil
}

func (c *Criteria) matchRules(rules []admissionregistrationv1.NamedRuleWithOperations, a *admit.Attributes) (Target,
	bool) {
	for i := range rules {
		if r := &rules[i]; matches(&r.RuleWithOperations, a, a.Resource, a.Version) && named(r, a) {
			return AsRequested(a), true
		}
	}
	if !c.equivalent || len(a.Resource.Versions) == 1 && a.Cohabits == nil {
		return Target{}, false
	}
	for i := range rules {
		r := &rules[i]
		for _, v := range equivalents(a) {
			if v != a.Version && matches(&r.RuleWithOperations, a, a.Resource, v) && named(r, a) {
				return target(a, v), true
			}
		}
		if a.Cohabits != nil && matches(&r.RuleWithOperations, a, a.Cohabits, a.CohabitsVersion) && named(r, a) {
			return target(a, a.CohabitsVersion), true
		}
	}
	return Target{}, false
}

// equivalents returns the other versions of the resource for the objects of a write, in the order of the definition:
// all of a custom kind, the served ones of a built-in kind.
func equivalents(a *admit.Attributes) []*catalog.Version {
	versions := slices.DeleteFunc(slices.Clone(a.Resource.Versions), func(v *catalog.Version) bool {
		if !v.Served && !a.Resource.Custom() {
			return true
		}
		switch a.Subresource {
		case "":
			return false
		case "scale":
			return v.Scale == nil
		}
		return !a.Resource.HasSubresource(v, a.Subresource)
	})
	slices.SortStableFunc(versions, func(v, w *catalog.Version) int { return v.Declared - w.Declared })
	return versions
}

// AsRequested returns the form in the request itself.
func AsRequested(a *admit.Attributes) Target { return target(a, a.Version) }

func target(a *admit.Attributes, v *catalog.Version) Target {
	r := a.Resource
	if a.Cohabits != nil && v == a.CohabitsVersion {
		r = a.Cohabits
	}
	t := Target{
		Resource: schema.GroupVersionResource{Group: r.Group, Version: v.Name, Resource: r.Plural},
		Kind:     a.Kind,
		Version:  v,
	}
	if a.Kind.Group == a.Resource.Group && a.Kind.Kind == a.Resource.Kind {
		t.Kind = schema.GroupVersionKind{Group: r.Group, Version: v.Name, Kind: r.Kind}
	}
	return t
}

// named reports whether a rule applies to the write's name. A name not generated yet does not match.
func named(r *admissionregistrationv1.NamedRuleWithOperations, a *admit.Attributes) bool {
	return len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.Name)
}

// matches reports whether a rule matches a write, taken as one to a version of a resource, its own or its twin.
func matches(
	r *admissionregistrationv1.RuleWithOperations, a *admit.Attributes, as *catalog.Resource, v *catalog.Version,
) bool {
	return matchesScope(r.Scope, a) && matchesOperation(r.Operations, a.Operation) && hasOrAll(r.APIGroups, as.Group) &&
		hasOrAll(r.APIVersions, v.Name) && matchesResource(r.Resources, as.Plural, a.Subresource)
}

func matchesScope(s *admissionregistrationv1.ScopeType, a *admit.Attributes) bool {
	if s == nil || *s == admissionregistrationv1.AllScopes {
		return true
	}
	inNamespace := a.Namespace != "" && !a.Resource.IsNamespace()
	switch *s {
	case admissionregistrationv1.NamespacedScope:
		return inNamespace
	case admissionregistrationv1.ClusterScope:
		return !inNamespace
	}
	return false
}

func matchesOperation(list []admissionregistrationv1.OperationType, op admit.Operation) bool {
	for _, o := range list {
		if o == admissionregistrationv1.OperationAll || string(o) == string(op) {
			return true
		}
	}
	return false
}

func hasOrAll(list []string, want string) bool {
	for _, s := range list {
		if s == "*" || s == want {
			return true
		}
	}
	return false
}

func matchesResource(list []string, plural, subresource string) bool {
	for _, s := range list {
		resource, sub, _ := strings.Cut(s, "/")
		if (resource == "*" || resource == plural) && (sub == "*" || sub == subresource) {
			return true
		}
	}
	return false
}

func (c *Criteria) matchNamespace(ctx context.Context, a *admit.Attributes, ns Namespaces) (bool, error) {
	if a.Namespace == "" && a.Resource.Plural != "namespaces" {
		return true, nil // cluster-scoped objects are never exempt
	}
	if c.namespaces.err != nil {
		return false, c.namespaces.err
	}
	if c.namespaces.Empty() {
		return true, nil
	}
	// A written namespace is matched by its new labels.
	if a.Resource.Plural == "namespaces" && a.Subresource == "" && a.Operation != admit.Delete {
		return c.namespaces.Matches(labelsOf(a.Object)), nil
	}
	set, err := ns.Labels(ctx, a.Namespace)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return false, err
		}
		return false, apierrors.NewInternalError(err)
	}
	return c.namespaces.Matches(set), nil
}

func (c *Criteria) matchObject(a *admit.Attributes) (bool, error) {
	switch {
	case c.objects.err != nil:
		return false, c.objects.err
	case c.objects.Empty():
		return true, nil
	}
	return a.Object != nil && c.objects.Matches(labelsOf(a.Object)) || a.Old != nil &&
		c.objects.Matches(labelsOf(a.Old)), nil
}

// labelsOf returns metadata.labels of a decoded object.
func labelsOf(obj map[string]any) labels.Set {
	meta, _ := obj["metadata"].(map[string]any)
	have, _ := meta["labels"].(map[string]any)
	set := make(labels.Set, len(have))
	for k, v := range have {
		if s, ok := v.(string); ok {
			set[k] = s
		}
	}
	return set
}
