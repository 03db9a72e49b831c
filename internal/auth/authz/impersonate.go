package authz

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// Impersonations authorizes impersonation. It caches the mode of a user's last impersonation and tries that mode first.
type Impersonations struct {
	authorizer Authorizer
	metrics    *impersonationMetrics
	last       lastModes
	// LegacyOnly disables the constrained modes, like Kubernetes without the feature gate ConstrainedImpersonation, and
	// uses the order and texts of its older filter.
	LegacyOnly bool
}

// NewImpersonations returns Impersonations that use a, with metrics in registry.
func NewImpersonations(a Authorizer, registry *prometheus.Registry) *Impersonations {
	return &Impersonations{authorizer: a, metrics: newImpersonationMetrics(registry)}
}

// Impersonated is an authorized impersonated user.
type Impersonated struct {
	User user.Info
	// Constraint is the verb that allowed constrained impersonation, such as "impersonate:user-info"; "" for the older
	// way.
	Constraint string
}

// Impersonate decides whether u may make a request as wanted. It returns wanted with the groups that follow from its
// name. The error is a 403 that names the missing permission, or a 400 if wanted has no name.
//
// KEP-5284 defines two modes. The constrained modes need one permission for this action as another user (verb
// impersonate-on:MODE:VERB) and one for each property of wanted (impersonate:MODE). The legacy mode needs permissions
// only for the properties (impersonate). Either is sufficient; if neither is granted, the response names the
// constrained mode's missing permission.
func (m *Impersonations) Impersonate(
	ctx context.Context, u user.Info, wanted *user.DefaultInfo, info *request.Info,
) (Impersonated, error) {
	if wanted.Name == "" {
		return Impersonated{}, m.nameless(wanted)
	}
	began := time.Now()
	var refused error
	for _, mode := range m.modes(u, wanted) {
		i := impersonation{
			authorizer: m.authorizer, metrics: m.metrics, user: u, wanted: wanted, mode: mode, older: m.LegacyOnly,
		}
		as, err := i.try(ctx, info)
		if err == nil {
			m.last.set(u.GetName(), mode)
			m.metrics.attempt(mode, true, time.Since(began))
			return as, nil
		}
		if refused == nil {
			refused = err
		}
	}
	m.metrics.attempt("", false, time.Since(began))
	return Impersonated{}, refused
}

// nameless refuses to impersonate a user without a name, in Kubernetes' words.
func (m *Impersonations) nameless(wanted *user.DefaultInfo) error {
	if !m.LegacyOnly {
		return apierrors.NewBadRequest(fmt.Sprintf("requested %#v without impersonating a user name", wanted))
	}
	var refs []corev1.ObjectReference
	for _, group := range wanted.Groups {
		refs = append(refs, corev1.ObjectReference{Kind: "Group", Name: group})
	}
	const version = authenticationGroup + "/v1"
	for _, key := range slices.Sorted(maps.Keys(wanted.Extra)) {
		for _, value := range wanted.Extra[key] {
			refs = append(refs,
				corev1.ObjectReference{Kind: "UserExtra", APIVersion: version, Name: value, FieldPath: key})
		}
	}
	if wanted.UID != "" {
		refs = append(refs, corev1.ObjectReference{Kind: "UID", APIVersion: version, Name: wanted.UID})
	}
	return apierrors.NewBadRequest(fmt.Sprintf("requested %v without impersonating a user", refs))
}

// modes returns the modes to try, in this order.
func (m *Impersonations) modes(u user.Info, wanted *user.DefaultInfo) []string {
	if m.LegacyOnly {
		return []string{legacy}
	}
	return m.last.first(u.GetName(), modesFor(u, wanted))
}

// impersonation is one attempt in one mode.
type impersonation struct {
	authorizer Authorizer
	metrics    *impersonationMetrics
	user       user.Info
	wanted     *user.DefaultInfo
	mode       string
	verb       string
	older      bool // no other mode applies
}

// The modes, the older way last.
const (
	associatedNode     = "associated-node"
	arbitraryNode      = "arbitrary-node"
	serviceAccountMode = "serviceaccount"
	userInfo           = "user-info"
	legacy             = "legacy"
)

func (i *impersonation) constrained() bool { return i.mode != legacy }

// try returns the impersonated user if all permissions of the mode are granted.
func (i *impersonation) try(ctx context.Context, info *request.Info) (Impersonated, error) {
	as := Impersonated{}
	i.verb = "impersonate"
	if i.constrained() {
		i.verb += ":" + i.mode
		as.Constraint = i.verb
		if i.mode == associatedNode {
			i.user = onSomeNode(i.user)
		}
		on := *info
		on.Verb = "impersonate-on:" + i.mode + ":" + info.Verb
		if err := i.check(ctx, &on); err != nil {
			return as, err
		}
	}
	var err error
	as.User, err = i.checkProperties(ctx)
	return as, err
}

// onSomeNode returns u as authorizers see it when it acts as its own node: the permission covers all nodes, so the name
// of the node must not matter. Of the extra keys only the names are kept.
func onSomeNode(u user.Info) user.Info {
	keys := slices.Sorted(maps.Keys(u.GetExtra()))
	return &user.DefaultInfo{
		Name: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(),
		Extra: map[string][]string{"authentication.kubernetes.io/associated-node-keys": keys},
	}
}

// modesFor returns the applicable modes, in Kubernetes' order. They depend on the kind of name; nodes and service
// accounts have fixed groups and cannot get others.
func modesFor(u user.Info, wanted *user.DefaultInfo) []string {
	nameOnly := wanted.UID == "" && len(wanted.Groups) == 0 && len(wanted.Extra) == 0
	if node := nodeName(wanted.Name); node != "" {
		if !nameOnly {
			return []string{legacy}
		}
		if RunsOn(u, node) {
			return []string{associatedNode, arbitraryNode, legacy}
		}
		return []string{arbitraryNode, legacy}
	}
	if _, _, err := serviceaccount.SplitUsername(wanted.Name); err == nil {
		if !nameOnly {
			return []string{legacy}
		}
		return []string{serviceAccountMode, legacy}
	}
	return []string{userInfo, legacy}
}

// RunsOn reports whether u is a service account of a pod on the node, according to its token.
func RunsOn(u user.Info, node string) bool {
	_, _, err := serviceaccount.SplitUsername(u.GetName())
	return err == nil && slices.Equal(u.GetExtra()[serviceaccount.NodeNameKey], []string{node})
}

// checkProperties checks the permission for each property of wanted.
func (i *impersonation) checkProperties(ctx context.Context) (user.Info, error) {
	as := *i.wanted
	checks := []func(context.Context, *user.DefaultInfo) error{i.checkName, i.checkUID, i.checkGroups, i.checkExtra}
	if i.older {
		checks = append(slices.Delete(checks, 1, 2), i.checkUID)
	}
	for _, check := range checks {
		if err := check(ctx, &as); err != nil {
			return nil, err
		}
	}
	switch {
	case as.Name == user.Anonymous:
		addGroup(&as, user.AllUnauthenticated)
	case !slices.Contains(as.Groups, user.AllUnauthenticated):
		addGroup(&as, user.AllAuthenticated)
	}
	return &as, nil
}

func (i *impersonation) checkName(ctx context.Context, as *user.DefaultInfo) error {
	info := i.property(i.group(), "users", as.Name)
	if node := nodeName(as.Name); node != "" && i.constrained() {
		info.Resource, info.Name = "nodes", node
		if i.mode == associatedNode {
			info.Name = "*" // the permission is for the caller's own node, whatever its name
		}
		as.Groups = []string{user.NodesGroup}
	}
	if namespace, name, err := serviceaccount.SplitUsername(as.Name); err == nil {
		info.Resource, info.Namespace, info.Name = "serviceaccounts", namespace, name
		if len(as.Groups) == 0 {
			as.Groups = serviceaccount.MakeGroupNames(namespace)
		}
	}
	return i.check(ctx, info)
}

func (i *impersonation) checkUID(ctx context.Context, as *user.DefaultInfo) error {
	if as.UID == "" {
		return nil
	}
	return i.check(ctx, i.property(authenticationGroup, "uids", as.UID))
}

// manyChecks is the number of groups or extra values from which the constrained mode first checks all of them at once.
const manyChecks = 4

func (i *impersonation) checkGroups(ctx context.Context, _ *user.DefaultInfo) error {
	groups := i.wanted.Groups
	if len(groups) == 0 {
		return nil
	}
	if i.constrained() {
		if slices.Contains(groups, "") {
			return Forbidden(i.user, i.property(i.group(), "groups", ""),
				"impersonating the empty string group is not allowed")
		}
		if slices.Contains(groups, user.SystemPrivilegedGroup) {
			return Forbidden(i.user, i.property(i.group(), "groups", user.SystemPrivilegedGroup),
				"impersonating the system:masters group is not allowed")
		}
		if len(groups) >= manyChecks && i.check(ctx, i.property(i.group(), "groups", "*")) == nil {
			return nil
		}
	}
	for _, group := range groups {
		if err := i.check(ctx, i.property(i.group(), "groups", group)); err != nil {
			return err
		}
	}
	return nil
}

func (i *impersonation) checkExtra(ctx context.Context, as *user.DefaultInfo) error {
	if len(as.Extra) == 0 {
		return nil
	}
	if i.constrained() {
		if err := validateExtra(as.Extra); err != nil {
			return Forbidden(i.user, i.property(authenticationGroup, "userextras", ""), err.Error())
		}
		values := 0
		for _, v := range as.Extra {
			values += len(v)
		}
		all := i.property(authenticationGroup, "userextras", "*")
		all.Subresource = "*"
		if values >= manyChecks && i.check(ctx, all) == nil {
			return nil
		}
	}
	for key, values := range as.Extra {
		for _, value := range values {
			info := i.property(authenticationGroup, "userextras", value)
			info.Subresource = key
			if err := i.check(ctx, info); err != nil {
				return err
			}
		}
	}
	return nil
}

func validateExtra(extra map[string][]string) error {
	for key, values := range extra {
		if key == "" {
			return errors.New("impersonating the empty string key in extra is not allowed")
		}
		if err := utilvalidation.IsDomainPrefixedPath(field.NewPath("extra", "key"), key).ToAggregate(); err != nil {
			return fmt.Errorf("impersonating an invalid key in extra is not allowed: %w", err)
		}
		if key != strings.ToLower(key) {
			return fmt.Errorf("impersonating a non-lowercase key in extra is not allowed: %q", key)
		}
		if len(values) == 0 {
			return errors.New("impersonating empty values in extra is not allowed")
		}
		if slices.Contains(values, "") {
			return errors.New("impersonating the empty string value in extra is not allowed")
		}
	}
	return nil
}

const authenticationGroup = "authentication.k8s.io"

// group returns the API group of users and groups; in the older way it is the core group.
func (i *impersonation) group() string {
	if i.constrained() {
		return authenticationGroup
	}
	return ""
}

func (i *impersonation) property(group, resource, name string) *request.Info {
	return &request.Info{IsResource: true, Verb: i.verb, Group: group, Version: "v1", Resource: resource, Name: name}
}

func (i *impersonation) check(ctx context.Context, info *request.Info) error {
	began := time.Now()
	d, err := i.authorizer.Authorize(ctx, i.user, info)
	i.metrics.check(i.mode, d.Verdict == Allow, time.Since(began))
	if i.older {
		if d.Allowed() && err == nil {
			return nil
		}
		return Forbidden(i.user, info, d.Reason)
	}
	if d.Allowed() {
		return nil
	}
	if apierrors.IsForbidden(err) {
		return err
	}
	reason := d.Reason
	if err != nil {
		reason = err.Error()
		if d.Reason != "" {
			reason += ": " + d.Reason
		}
	}
	return Forbidden(i.user, info, reason)
}

// addGroup does not modify the array of as.Groups, which belongs to the headers.
func addGroup(as *user.DefaultInfo, group string) {
	if !slices.Contains(as.Groups, group) {
		as.Groups = append(slices.Clip(as.Groups), group)
	}
}

// nodeName returns the node of a user name, or "".
func nodeName(username string) string {
	name, ok := strings.CutPrefix(username, "system:node:")
	if !ok || len(validation.NameIsDNSSubdomain(name, false)) > 0 {
		return ""
	}
	return name
}
