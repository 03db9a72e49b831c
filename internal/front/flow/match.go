package flow

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// rules are the schemas in the order in which requests try them. They do not change.
type rules struct {
	schemas  []*schema
	catchAll *schema
}

// find returns the schema of a request: the first that matches. The last matches everything, but for users of neither
// of kube's two groups, whom it gets too.
func (r *rules) find(info *request.Info, who user.Info) *schema {
	for _, s := range r.schemas {
		if s.matches(info, who) {
			return s
		}
	}
	return r.catchAll
}

// schema is a FlowSchema that requests try.
type schema struct {
	name   string
	uid    []string // of its header
	method flowcontrolv1.FlowDistinguisherMethodType
	rules  []flowcontrolv1.PolicyRulesWithSubjects
	level  *level
	class  *class
}

// distinguish returns what tells the flows of a schema apart.
func (s *schema) distinguish(info *request.Info, who user.Info) string {
	switch s.method {
	case flowcontrolv1.FlowDistinguisherMethodByUserType:
		return who.GetName()
	case flowcontrolv1.FlowDistinguisherMethodByNamespaceType:
		return info.Namespace
	}
	return ""
}

// hash of a flow: the same for all servers.
func hash(schema, distinguisher string) uint64 {
	var memory [256]byte
	text := append(memory[:0], schema...)
	text = append(text, 0)
	text = append(text, distinguisher...)
	sum := sha256.Sum256(text)
	return binary.LittleEndian.Uint64(sum[:8])
}

func (s *schema) matches(info *request.Info, who user.Info) bool {
	for i := range s.rules {
		rule := &s.rules[i]
		if !slices.ContainsFunc(rule.Subjects, func(s flowcontrolv1.Subject) bool { return isSubject(&s, who) }) {
			continue
		}
		if info.IsResource {
			for j := range rule.ResourceRules {
				if resourceMatches(&rule.ResourceRules[j], info) {
					return true
				}
			}
			continue
		}
		for j := range rule.NonResourceRules {
			if pathMatches(&rule.NonResourceRules[j], info) {
				return true
			}
		}
	}
	return false
}

func isSubject(s *flowcontrolv1.Subject, who user.Info) bool {
	switch {
	case s.Kind == flowcontrolv1.SubjectKindUser && s.User != nil:
		return s.User.Name == flowcontrolv1.NameAll || s.User.Name == who.GetName()
	case s.Kind == flowcontrolv1.SubjectKindGroup && s.Group != nil:
		return s.Group.Name == flowcontrolv1.NameAll || slices.Contains(who.GetGroups(), s.Group.Name)
	case s.Kind == flowcontrolv1.SubjectKindServiceAccount && s.ServiceAccount != nil:
		name, ok := strings.CutPrefix(who.GetName(), "system:serviceaccount:")
		if ok {
			name, ok = strings.CutPrefix(name, s.ServiceAccount.Namespace)
		}
		if ok {
			name, ok = strings.CutPrefix(name, ":")
		}
		return ok && (s.ServiceAccount.Name == flowcontrolv1.NameAll || s.ServiceAccount.Name == name)
	}
	return false
}

func resourceMatches(rule *flowcontrolv1.ResourcePolicyRule, info *request.Info) bool {
	if !has(rule.Verbs, info.Verb, flowcontrolv1.VerbAll) || !hasResource(rule.Resources, info) ||
		!has(rule.APIGroups, info.Group, flowcontrolv1.APIGroupAll) {
		return false
	}
	if info.Namespace == "" {
		return rule.ClusterScope
	}
	return has(rule.Namespaces, info.Namespace, flowcontrolv1.NamespaceEvery)
}

// hasResource is has for "resource" or "resource/subresource".
func hasResource(list []string, info *request.Info) bool {
	if info.Subresource == "" {
		return has(list, info.Resource, flowcontrolv1.ResourceAll)
	}
	if len(list) == 1 && list[0] == flowcontrolv1.ResourceAll {
		return true
	}
	for _, each := range list {
		if rest, ok := strings.CutPrefix(each, info.Resource); ok && len(rest) > 0 && rest[0] == '/' &&
			rest[1:] == info.Subresource {
			return true
		}
	}
	return false
}

func pathMatches(rule *flowcontrolv1.NonResourcePolicyRule, info *request.Info) bool {
	if !has(rule.Verbs, info.Verb, flowcontrolv1.VerbAll) {
		return false
	}
	for _, url := range rule.NonResourceURLs {
		if url == flowcontrolv1.NonResourceAll || url == info.Path {
			return true
		}
		// What is below a path belongs to it, with or without "/*".
		if rest, ok := strings.CutPrefix(info.Path, strings.TrimSuffix(strings.TrimSuffix(url, "*"), "/")); ok &&
			strings.HasPrefix(rest, "/") {
			return true
		}
	}
	return false
}

// has reports whether list holds x, or is the wildcard, which stands alone.
func has(list []string, x, wildcard string) bool {
	return len(list) == 1 && list[0] == wildcard || slices.Contains(list, x)
}
