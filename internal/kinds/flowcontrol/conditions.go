package flowcontrol

import (
	"fmt"
	"math"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// mandatory returns the specs of the flow schemas that every server has, by name.
func mandatory(name string) object.Object {
	rule := func(groups ...string) []any {
		var subjects []any
		for _, g := range groups {
			subjects = append(subjects, object.Object{"kind": "Group", "group": object.Object{"name": g}})
		}
		every := []any{"*"}
		return []any{object.Object{
			"subjects": subjects,
			"resourceRules": []any{
				object.Object{
					"verbs": every, "apiGroups": every, "resources": every, "clusterScope": true, "namespaces": every,
				},
			},
			"nonResourceRules": []any{object.Object{"verbs": every, "nonResourceURLs": every}},
		}}
	}
	switch name {
	case "exempt":
		return object.Object{
			"priorityLevelConfiguration": object.Object{"name": "exempt"}, "matchingPrecedence": int64(1),
			"rules": rule("system:masters"),
		}
	case "catch-all":
		return object.Object{
			"priorityLevelConfiguration": object.Object{"name": "catch-all"}, "matchingPrecedence": int64(10000),
			"distinguisherMethod": object.Object{"type": "ByUser"},
			"rules":               rule("system:unauthenticated", "system:authenticated"),
		}
	}
	return nil
}

// flowSubject requires a subject to have exactly the field of its kind.
func flowSubject(val *rule.Validation, p rule.Value) {
	s, kind := p.Object(), object.String(p.Object(), "kind")
	kinds := [][2]string{{"ServiceAccount", "serviceAccount"}, {"User", "user"}, {"Group", "group"}}
	if !slices.ContainsFunc(kinds, func(k [2]string) bool { return k[0] == kind }) {
		val.Unsupported(p.Path.Child("kind"), kind, "Group", "ServiceAccount", "User")
		return
	}
	for _, k := range kinds {
		at, subject := p.Path.Child(k[1]), object.Map(s, k[1])
		switch {
		case k[0] != kind && subject != nil:
			val.Forbidden(at, fmt.Sprintf("%s is forbidden when subject kind is not '%s'", k[1], k[0]))
		case k[0] == kind && subject == nil:
			val.Required(at, fmt.Sprintf("%s is required when subject kind is '%s'", k[1], k[0]))
		case k[0] == kind:
			subjectName(val, kind, subject, at)
		}
	}
}

func subjectName(val *rule.Validation, kind string, subject object.Object, path *field.Path) {
	name := object.String(subject, "name")
	if name == "" {
		val.Required(path.Child("name"), "")
	}
	if kind != "ServiceAccount" {
		return
	}
	if name != "" && name != "*" {
		val.Invalids(path.Child("name"), name, apivalidation.ValidateServiceAccountName(name, false))
	}
	if ns := object.String(subject, "namespace"); ns == "" {
		val.Required(path.Child("namespace"), "must specify namespace for service account")
	} else {
		val.Invalids(path.Child("namespace"), ns, apivalidation.ValidateNamespaceName(ns, false))
	}
}

func flowRule(val *rule.Validation, p rule.Value) {
	r := p.Object()
	if rule.IsEmpty(r["resourceRules"]) && rule.IsEmpty(r["nonResourceRules"]) {
		val.Required(p.Path, "at least one of resourceRules and nonResourceRules has to be non-empty")
	}
}

// requestVerbs are the verbs of requests that rules may be about.
var requestVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"}

// all validates a list in which "*" means everything and must be alone. It reports whether the list has it.
func all(val *rule.Validation, path *field.Path, list []string, values string) bool {
	if !slices.Contains(list, "*") {
		return false
	}
	if len(list) > 1 {
		val.Invalid(path, list, "if '*' is present, must not specify other "+values)
	}
	return true
}

func flowVerbs(val *rule.Validation, p rule.Value) {
	list := rule.Strings(p.New)
	if len(list) == 0 || all(val, p.Path, list, "verbs") {
		return
	}
	if slices.ContainsFunc(list, func(v string) bool { return !slices.Contains(requestVerbs, v) }) {
		val.Add(field.NotSupported(p.Path, list, requestVerbs))
	}
}

func flowURLs(val *rule.Validation, p rule.Value) {
	list := rule.Strings(p.New)
	if all(val, p.Path, list, "non-resource URLs") {
		return
	}
	for i, url := range list {
		stars, wrong := strings.Count(url, "*"), ""
		switch {
		case url == "":
			wrong = "must not be empty"
		case url == "/":
		case url[0] != '/':
			wrong = "must start with slash"
		case strings.Contains(url, " "):
			wrong = "must not contain white-space"
		case strings.Contains(url, "//"):
			wrong = "must not contain double slash"
		case stars > 1, stars == 1 && !strings.HasSuffix(url, "/*"):
			wrong = "wildcard can only do suffix matching"
		}
		if wrong != "" {
			val.Invalid(p.Path.Index(i), url, wrong)
		}
	}
}

func flowNamespaces(val *rule.Validation, p rule.Value) {
	list := rule.Strings(p.New)
	if len(list) == 0 && !object.True(p.In, "clusterScope") {
		val.Required(p.Path, "resource rules that are not cluster scoped must supply at least one namespace")
	}
	if all(val, p.Path, list, "namespaces") {
		return
	}
	for i, ns := range list {
		for _, d := range apivalidation.ValidateNamespaceName(ns, false) {
			val.Invalid(p.Path.Index(i), ns, "each member of this list must be '*' or a DNS-1123 label; "+d)
		}
	}
}

func flowConditions(val *rule.Validation, p rule.Value) {
	seen := map[string]bool{}
	for i, c := range rule.Objects(p.New) {
		kind, at := object.String(c, "type"), p.Path.Index(i).Child("type")
		if seen[kind] {
			val.Duplicate(at, kind)
		}
		seen[kind] = true
		if kind == "" {
			val.Required(at, "")
		}
	}
}

func priorityLevel(val *rule.Validation, _ rule.Value) {
	spec, path, meta := object.Map(val.Obj, "spec"), field.NewPath("spec"), object.Map(val.Obj, "metadata")
	name, kind := object.String(meta, "name"), object.String(spec, "type")
	if _, ok := object.Map(meta, "annotations")["flowcontrol.k8s.io/preserve-zero-concurrency-shares"]; ok {
		val.Forbidden(field.NewPath("metadata", "annotations"),
			"annotation 'flowcontrol.k8s.io/preserve-zero-concurrency-shares' is forbidden")
	}
	if (name == "exempt") != (kind == "Exempt") {
		val.Invalid(path.Child("type"), kind, "must be 'Exempt' if and only if `name` is 'exempt'")
	}
	limited, exempt := object.Map(spec, "limited"), object.Map(spec, "exempt")
	switch kind {
	case "Exempt":
		val.Block("ExemptLevel", exempt, nil, path.Child("exempt"))
	case "Limited":
		if limited == nil {
			val.Required(path.Child("limited"), "")
		} else {
			val.Block("LimitedLevel", limited, nil, path.Child("limited"))
		}
	case "":
		val.Required(path.Child("type"), "")
	default:
		val.Unsupported(path.Child("type"), kind, "Exempt", "Limited")
	}
	if kind != "Exempt" && exempt != nil {
		val.Forbidden(path.Child("exempt"), "")
	}
	if kind != "Limited" && limited != nil {
		val.Forbidden(path.Child("limited"), "")
		responseMembers(val, object.Map(limited, "limitResponse"), path.Child("limited", "limitResponse"))
	}
	switch name {
	case "exempt": // spec.exempt is the administrator's
		if kind != "Exempt" || limited != nil {
			val.Invalid(path, spec, "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value")
		}
	case "catch-all":
		if !rule.Equivalent(spec, object.Object{"type": "Limited", "limited": object.Object{
			"nominalConcurrencyShares": int64(5), "lendablePercent": int64(0),
			"limitResponse": object.Object{"type": "Reject"},
		}}) {
			val.Invalid(path, spec, "spec of 'catch-all' must equal the fixed value")
		}
	}
}

func exemptLevel(val *rule.Validation, p rule.Value) {
	level := p.Object()
	if n, _ := object.Int(level, "nominalConcurrencyShares"); n < 0 {
		val.Invalid(p.Path.Child("nominalConcurrencyShares"), n, "must be a non-negative integer")
	}
	if n, _ := object.Int(level, "lendablePercent"); n < 0 || n > 100 {
		val.Invalid(p.Path.Child("lendablePercent"), n, "must be between 0 and 100, inclusive")
	}
}

// limitedLevel validates the concurrency limits of a level, and its response to excess requests.
func limitedLevel(val *rule.Validation, p rule.Value) {
	level := p.Object()
	if n, _ := object.Int(level, "nominalConcurrencyShares"); n < 0 {
		val.Invalid(p.Path.Child("nominalConcurrencyShares"), n, "must be a non-negative integer")
	}
	limitResponse(val, object.Map(level, "limitResponse"), p.Path.Child("limitResponse"))
	if n, _ := object.Int(level, "lendablePercent"); n < 0 || n > 100 {
		val.Invalid(p.Path.Child("lendablePercent"), n, "must be between 0 and 100, inclusive")
	}
	if n, _ := object.Int(level, "borrowingLimitPercent"); n < 0 {
		val.Invalid(p.Path.Child("borrowingLimitPercent"), n, "if specified, must be a non-negative integer")
	}
}

func limitResponse(val *rule.Validation, response object.Object, path *field.Path) {
	q := object.Map(response, "queuing")
	switch kind := object.String(response, "type"); {
	case kind == "Queue" && q != nil:
		queuing(val, q, path.Child("queuing"))
	case kind != "Queue" && kind != "Reject" && kind != "":
		val.Unsupported(path.Child("type"), kind, "Queue", "Reject")
	}
	responseMembers(val, response, path)
}

// responseMembers requires the members of a response that belong to its type, also for a level without limits.
func responseMembers(val *rule.Validation, response object.Object, path *field.Path) {
	kind, q := object.String(response, "type"), object.Map(response, "queuing")
	if kind == "" {
		val.Required(path.Child("type"), "")
	}
	switch {
	case kind != "Queue" && q != nil:
		val.Forbidden(path.Child("queuing"), "")
	case kind == "Queue" && q == nil:
		val.Required(path.Child("queuing"), "")
	}
}

// queuing validates the queues of a level: shuffle sharding maps a flow to a hand of queues by a hash of 60 bits, which
// must suffice to distinguish all hands.
func queuing(val *rule.Validation, q object.Object, path *field.Path) {
	const mostQueues, hashBits = 10 * 1000 * 1000, 60
	if n, _ := object.Int(q, "queueLengthLimit"); n <= 0 {
		val.Invalid(path.Child("queueLengthLimit"), n, "must be positive")
	}
	queues, _ := object.Int(q, "queues")
	if queues <= 0 {
		val.Invalid(path.Child("queues"), queues, "must be positive")
	} else if queues > mostQueues {
		val.Invalid(path.Child("queues"), queues, fmt.Sprintf("must not be greater than %d", mostQueues))
	}
	hand, _ := object.Int(q, "handSize")
	switch at := path.Child("handSize"); {
	case hand <= 0:
		val.Invalid(at, hand, "must be positive")
	case hand > queues:
		val.Invalid(at, hand, fmt.Sprintf("should not be greater than queues (%d)", queues))
	case int(math.Ceil(math.Log2(float64(queues))*float64(hand))) > hashBits:
		val.Invalid(at, hand,
			fmt.Sprintf("required entropy bits of deckSize %d and handSize %d should not be greater than %d", queues,
				hand, hashBits))
	}
}
