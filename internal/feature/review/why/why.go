// Package why explains a refusal: the nearest rules of the user with their missing parts, the roles that would allow
// the request, and the binding and the smallest role that would do.
//
// It complements the authorizer (auth/rbac), which gives no reasons. Access reviews call it if they ask for an
// explanation (?explain=true). Explain is pure: it uses only the given Policy. For callers this is the part that they
// may read themselves (reader.go), so an explanation reveals no more than a list of roles. docs/design/why.md gives the
// reasons for this design.
package why

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// Policy is a set of roles and bindings.
type Policy struct {
	Roles    []Role
	Bindings []Binding
	// Hidden are the resources that are left out, such as "clusterroles", or "roles in the namespace dev".
	Hidden []string
}

// Role is a Role, or a ClusterRole, for which namespace is "".
type Role struct {
	Namespace, Name string
	Rules           []rbacv1.PolicyRule
}

// Binding is a RoleBinding, or a ClusterRoleBinding, for which namespace is "".
type Binding struct {
	Namespace, Name string
	RoleRef         rbacv1.RoleRef
	Subjects        []rbacv1.Subject
}

// Explanation is the field status.explanation of a review.
type Explanation struct {
	// Summary is a one-sentence summary.
	Summary string `json:"summary"`
	// Nearest are the user's rules with the fewest missing parts, the nearest first.
	Nearest []Near `json:"nearest,omitempty"`
	// GrantedBy are roles that would allow the request if they were bound, the least powerful first.
	GrantedBy []Grant `json:"grantedBy,omitempty"`
	// Smallest is the rule that allows the request and nothing else.
	Smallest rbacv1.PolicyRule `json:"smallest"`
	// Binding would bind a role with that rule to the user: a kind, and its namespace.
	Binding Proposal `json:"binding"`
	// Dangling are bindings of the user to missing roles.
	Dangling []Reference `json:"dangling,omitempty"`
	// Hidden are the resources that the caller may not list; the explanation does not use them.
	Hidden []string `json:"hidden,omitempty"`
}

// Near is a rule that a user has, with its missing parts.
type Near struct {
	Role    Reference         `json:"role"`
	Binding Reference         `json:"binding"`
	Subject rbacv1.Subject    `json:"subject"` // the subject that matches the user
	Rule    rbacv1.PolicyRule `json:"rule"`
	// Missing are the parts of the request that the rule does not cover. With all of them the rule would allow it, and
	// without any one of them it would not.
	Missing []Missing `json:"missing"`
}

// Reference names a role or a binding.
type Reference struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is the kind, and the name after the namespace.
func (r Reference) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Missing is a part of a request that a rule does not cover.
type Missing struct {
	// Part is one of the constants below.
	Part string `json:"part"`
	// Wanted is the value in the request; "" means no name, no namespace, or the core group.
	Wanted string `json:"wanted"`
	// Has is the values in the rule.
	Has []string `json:"has,omitempty"`
	// Note is the probable mistake.
	Note string `json:"note,omitempty"`
}

// The parts of a request that a rule covers or not. PartNamespace is that of the binding.
const (
	PartVerb      = "verb"
	PartGroup     = "apiGroup"
	PartResource  = "resource"
	PartName      = "resourceName"
	PartNamespace = "namespace"
	PartURL       = "nonResourceURL"
)

// Grant is a role that would allow a request.
type Grant struct {
	Role    Reference         `json:"role"`
	Rule    rbacv1.PolicyRule `json:"rule"` // the rule that would allow it
	Binding Proposal          `json:"binding"`
	// Power is a measure for comparing roles.
	Power int64 `json:"power"`
}

// Proposal is a missing binding.
type Proposal struct {
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace,omitempty"`
	RoleRef   *rbacv1.RoleRef `json:"roleRef,omitempty"`
	Subject   rbacv1.Subject  `json:"subject"`
}

// The most that an explanation holds of rules and of roles.
const (
	mostNear   = 3
	mostGrants = 5
)

const (
	kindRole, kindClusterRole               = "Role", "ClusterRole"
	kindRoleBinding, kindClusterRoleBinding = "RoleBinding", "ClusterRoleBinding"
)

// Explain explains why p does not allow the request for u.
func Explain(p *Policy, u user.Info, info *request.Info) *Explanation {
	e := &Explanation{Smallest: Smallest(info), Binding: propose(u, info), Hidden: p.Hidden}
	rules := map[Reference]*Role{}
	for i := range p.Roles {
		rules[p.Roles[i].reference()] = &p.Roles[i]
	}
	var near []Near
	for i := range p.Bindings {
		b := &p.Bindings[i]
		subject, ok := b.subjectOf(u)
		if !ok {
			continue
		}
		role := rules[b.role()]
		if role == nil {
			if !p.hides(b.role()) && (b.Namespace == "" || b.Namespace == info.Namespace) {
				e.Dangling = append(e.Dangling, b.reference())
			}
			continue
		}
		for j := range role.Rules {
			missing := lacks(&role.Rules[j], b.Namespace, info)
			near = append(near, Near{
				Role: role.reference(), Binding: b.reference(), Subject: subject, Rule: role.Rules[j], Missing: missing,
			})
		}
	}
	e.Nearest = nearest(near)
	e.GrantedBy = grants(p.Roles, u, info)
	e.Summary = e.summary(u, info)
	return e
}

func (r *Role) reference() Reference {
	if r.Namespace == "" {
		return Reference{kindClusterRole, "", r.Name}
	}
	return Reference{kindRole, r.Namespace, r.Name}
}

func (b *Binding) reference() Reference {
	if b.Namespace == "" {
		return Reference{kindClusterRoleBinding, "", b.Name}
	}
	return Reference{kindRoleBinding, b.Namespace, b.Name}
}

// role returns the reference of the bound role.
func (b *Binding) role() Reference {
	if b.RoleRef.Kind == kindClusterRole {
		return Reference{kindClusterRole, "", b.RoleRef.Name}
	}
	return Reference{b.RoleRef.Kind, b.Namespace, b.RoleRef.Name}
}

// hides reports whether a role may exist although p does not contain it.
func (p *Policy) hides(role Reference) bool {
	if role.Kind == kindClusterRole {
		return slices.Contains(p.Hidden, "clusterroles")
	}
	return slices.Contains(p.Hidden, "roles")
}

const accountPrefix = "system:serviceaccount:"

// subjectOf returns the subject of the binding that matches a user.
func (b *Binding) subjectOf(u user.Info) (rbacv1.Subject, bool) {
	for _, s := range b.Subjects {
		switch s.Kind {
		case rbacv1.UserKind:
			if s.Name == u.GetName() {
				return s, true
			}
		case rbacv1.GroupKind:
			if slices.Contains(u.GetGroups(), s.Name) {
				return s, true
			}
		case rbacv1.ServiceAccountKind:
			if s.Namespace == "" {
				s.Namespace = b.Namespace
			}
			if s.Namespace != "" && accountPrefix+s.Namespace+":"+s.Name == u.GetName() {
				return s, true
			}
		}
	}
	return rbacv1.Subject{}, false
}

// propose returns a binding that would grant u a role for the request, without the role.
func propose(u user.Info, info *request.Info) Proposal {
	p := Proposal{Kind: kindClusterRoleBinding, Subject: rbacv1.Subject{
		Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: u.GetName(),
	}}
	if info.IsResource && info.Namespace != "" {
		p.Kind, p.Namespace = kindRoleBinding, info.Namespace
	}
	if rest, ok := strings.CutPrefix(u.GetName(), accountPrefix); ok {
		if namespace, name, ok := strings.Cut(rest, ":"); ok {
			p.Subject = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
		}
	}
	return p
}

// Smallest returns the rule that allows the request, and nothing that can be left out.
func Smallest(info *request.Info) rbacv1.PolicyRule {
	if !info.IsResource {
		return rbacv1.PolicyRule{Verbs: []string{info.Verb}, NonResourceURLs: []string{info.Path}}
	}
	r := rbacv1.PolicyRule{
		Verbs: []string{info.Verb}, APIGroups: []string{info.Group}, Resources: []string{resource(info)},
	}
	if info.Name != "" {
		r.ResourceNames = []string{info.Name}
	}
	return r
}

// resource returns the resource of a request as rules spell it.
func resource(info *request.Info) string {
	if info.Subresource == "" {
		return info.Resource
	}
	return info.Resource + "/" + info.Subresource
}

func (e *Explanation) summary(u user.Info, info *request.Info) string {
	action := fmt.Sprintf("%s may not %s", u.GetName(), Describe(info))
	switch {
	case len(e.Nearest) > 0:
		return fmt.Sprintf("%s: the closest rule is in %s, which lacks %s", action, e.Nearest[0].Role,
			joinMissing(e.Nearest[0].Missing))
	case len(e.Hidden) > 0:
		return fmt.Sprintf("%s; the closest rules are hidden, because the caller may not list %s", action,
			strings.Join(e.Hidden, ", "))
	}
	return action + ": the user has no similar rule"
}

// Describe describes the request.
func Describe(info *request.Info) string {
	if !info.IsResource {
		return info.Verb + " " + info.Path
	}
	text := info.Verb + " " + resource(info)
	if info.Group != "" {
		text = info.Verb + " " + info.Resource + "." + info.Group
		if info.Subresource != "" {
			text += "/" + info.Subresource
		}
	}
	if info.Name != "" {
		text += fmt.Sprintf(" %q", info.Name)
	}
	if info.Namespace != "" {
		return text + " in the namespace " + info.Namespace
	}
	return text + " in the whole cluster"
}

func joinMissing(missing []Missing) string {
	var all []string
	for _, m := range missing {
		all = append(all, m.String())
	}
	return strings.Join(all, " and ")
}

// String describes the missing part.
func (m Missing) String() string {
	switch {
	case m.Wanted != "":
		return "the " + words[m.Part] + " " + m.Wanted
	case m.Part == PartNamespace:
		return "a ClusterRoleBinding"
	case m.Part == PartName:
		return "all names"
	}
	return "the core API group"
}

var words = map[string]string{
	PartVerb: "verb", PartGroup: "API group", PartResource: "resource", PartName: "name", PartNamespace: "namespace",
	PartURL: "URL",
}
