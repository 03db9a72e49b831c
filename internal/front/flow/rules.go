package flow

import (
	"math/bits"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// rules holds the schemas in the order in which requests try them. It is immutable.
type rules struct {
	catchAll *schema
	// Rule i belongs to schema of[i]. The sets hold rules by their subjects: a request looks up its user and groups,
	// and tries only the rules in these sets.
	of       []*schema
	everyone set
	users    map[string]set
	groups   map[string]set
	accounts map[string]set // service accounts, as namespace:name
	spaces   map[string]set // all service accounts of a namespace
}

func newRules(schemas []*schema) *rules {
	r := &rules{
		users: map[string]set{}, groups: map[string]set{}, accounts: map[string]set{}, spaces: map[string]set{},
	}
	for _, s := range schemas {
		if s.name == flowcontrolv1.FlowSchemaNameCatchAll {
			r.catchAll = s
		}
		s.first = len(r.of)
		for i := range s.rules {
			for j := range s.rules[i].Subjects {
				r.add(&s.rules[i].Subjects[j], len(r.of))
			}
			r.of = append(r.of, s)
		}
	}
	return r
}

// add has the rule be tried for a subject.
func (r *rules) add(s *flowcontrolv1.Subject, rule int) {
	by, name := r.users, ""
	switch {
	case s.Kind == flowcontrolv1.SubjectKindUser && s.User != nil:
		name = s.User.Name
	case s.Kind == flowcontrolv1.SubjectKindGroup && s.Group != nil:
		by, name = r.groups, s.Group.Name
	case s.Kind == flowcontrolv1.SubjectKindServiceAccount && s.ServiceAccount != nil:
		if a := s.ServiceAccount; a.Name == flowcontrolv1.NameAll {
			r.spaces[a.Namespace] = r.spaces[a.Namespace].with(rule)
		} else {
			r.accounts[a.Namespace+":"+a.Name] = r.accounts[a.Namespace+":"+a.Name].with(rule)
		}
		return
	default:
		return
	}
	if name == flowcontrolv1.NameAll {
		r.everyone = r.everyone.with(rule)
		return
	}
	by[name] = by[name].with(rule)
}

// find returns the first schema that matches a request. The last schema matches everything except users in neither of
// Kubernetes' two groups; they get it, too.
func (r *rules) find(info *request.Info, u user.Info) *schema {
	var memory [4]uint64
	try := append(set(memory[:0]), r.everyone...).and(r.users[u.GetName()])
	for _, group := range u.GetGroups() {
		try = try.and(r.groups[group])
	}
	if account, ok := strings.CutPrefix(u.GetName(), "system:serviceaccount:"); ok {
		if namespace, _, ok := strings.Cut(account, ":"); ok {
			try = try.and(r.accounts[account]).and(r.spaces[namespace])
		}
	}
	for i, word := range try {
		for ; word != 0; word &= word - 1 {
			rule := i*64 + bits.TrailingZeros64(word)
			if s := r.of[rule]; ruleMatches(&s.rules[rule-s.first], info) {
				return s
			}
		}
	}
	return r.catchAll
}

// set is a set of rules, a bit each.
type set []uint64

// with returns s and the rule. It may change s.
func (s set) with(rule int) set {
	for len(s) <= rule/64 {
		s = append(s, 0)
	}
	s[rule/64] |= 1 << (rule % 64)
	return s
}

// and returns the union of s and other. It may change s.
func (s set) and(other set) set {
	for len(s) < len(other) {
		s = append(s, 0)
	}
	for i, word := range other {
		s[i] |= word
	}
	return s
}
