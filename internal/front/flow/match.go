package flow

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// schema is a FlowSchema that requests try.
type schema struct {
	name   string
	uid    []string // value of its header
	method flowcontrolv1.FlowDistinguisherMethodType
	rules  []flowcontrolv1.PolicyRulesWithSubjects
	first  int // number of its first rule
	level  *level
	class  *class
	hashes hashes
}

// distinguish returns the flow of a request within a schema.
func (s *schema) distinguish(info *request.Info, u user.Info) string {
	switch s.method {
	case flowcontrolv1.FlowDistinguisherMethodByUserType:
		return u.GetName()
	case flowcontrolv1.FlowDistinguisherMethodByNamespaceType:
		return info.Namespace
	}
	return ""
}

// hashes caches the hashes of recent flows, because computing one costs as much as the rest of Admit.
type hashes [64]atomic.Pointer[hashed]

type hashed struct {
	flow string
	hash uint64
}

var seed = maphash.MakeSeed()

// of returns the hash of a flow of a schema.
func (h *hashes) of(schema, flow string) uint64 {
	at := &h[maphash.String(seed, flow)%uint64(len(h))]
	if last := at.Load(); last != nil && last.flow == flow {
		return last.hash
	}
	found := hash(schema, flow)
	at.Store(&hashed{strings.Clone(flow), found})
	return found
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

func ruleMatches(rule *flowcontrolv1.PolicyRulesWithSubjects, info *request.Info) bool {
	if info.IsResource {
		for i := range rule.ResourceRules {
			if resourceMatches(&rule.ResourceRules[i], info) {
				return true
			}
		}
		return false
	}
	for i := range rule.NonResourceRules {
		if pathMatches(&rule.NonResourceRules[i], info) {
			return true
		}
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
		// A path includes its subpaths, with or without "/*".
		if rest, ok := strings.CutPrefix(info.Path, strings.TrimSuffix(strings.TrimSuffix(url, "*"), "/")); ok &&
			strings.HasPrefix(rest, "/") {
			return true
		}
	}
	return false
}

// has reports whether list contains x, or consists of the wildcard.
func has(list []string, x, wildcard string) bool {
	return len(list) == 1 && list[0] == wildcard || slices.Contains(list, x)
}
