package check

import (
	"fmt"
	"math"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// flowFunctions are about the kinds of flowcontrol.apiserver.k8s.io.
func flowFunctions() map[string]func(*judgement, place) {
	return map[string]func(*judgement, place){
		"flowSchema":     flowSchema,
		"flowSubject":    flowSubject,
		"flowRule":       flowRule,
		"flowVerbs":      flowVerbs,
		"flowURLs":       flowURLs,
		"flowGroups":     func(j *judgement, p place) { j.all(p.path, texts(p.value), "api groups") },
		"flowResources":  func(j *judgement, p place) { j.all(p.path, texts(p.value), "resources") },
		"flowNamespaces": flowNamespaces,
		"flowConditions": flowConditions,
		"priorityLevel":  priorityLevel,
		"limitedLevel":   limitedLevel,
		"exemptLevel":    exemptLevel,
	}
}

// mandatory returns the specs of the flow schemas that every server has, by name.
func mandatory(name string) object {
	rule := func(groups ...string) []any {
		var subjects []any
		for _, g := range groups {
			subjects = append(subjects, object{"kind": "Group", "group": object{"name": g}})
		}
		every := []any{"*"}
		return []any{object{
			"subjects": subjects,
			"resourceRules": []any{
				object{
					"verbs": every, "apiGroups": every, "resources": every, "clusterScope": true, "namespaces": every,
				},
			},
			"nonResourceRules": []any{object{"verbs": every, "nonResourceURLs": every}},
		}}
	}
	switch name {
	case "exempt":
		return object{
			"priorityLevelConfiguration": object{"name": "exempt"}, "matchingPrecedence": int64(1),
			"rules": rule("system:masters"),
		}
	case "catch-all":
		return object{
			"priorityLevelConfiguration": object{"name": "catch-all"}, "matchingPrecedence": int64(10000),
			"distinguisherMethod": object{"type": "ByUser"},
			"rules":               rule("system:unauthenticated", "system:authenticated"),
		}
	}
	return nil
}

func flowSchema(j *judgement, _ place) {
	spec, path, name := inner(j.obj, "spec"), field.NewPath("spec"), text1(inner(j.obj, "metadata"), "name")
	const highest = 10000
	n, _ := number(spec, "matchingPrecedence")
	switch at := path.Child("matchingPrecedence"); {
	case n <= 0:
		j.invalid(at, n, "must be a positive value")
	case n > highest:
		j.invalid(at, n, fmt.Sprintf("must not be greater than %d", highest))
	case n == 1 && name != "exempt":
		j.invalid(at, n, "only the schema named 'exempt' may have matchingPrecedence 1")
	}
	if method := inner(spec, "distinguisherMethod"); method != nil &&
		!slices.Contains([]string{"ByNamespace", "ByUser"}, text1(method, "type")) {
		j.unsupported(path.Child("distinguisherMethod", "type"), method, "ByNamespace", "ByUser")
	}
	if want := mandatory(name); want != nil && !same(spec, want) {
		j.invalid(path, spec, fmt.Sprintf("spec of '%s' must equal the fixed value", name))
	}
}

// flowSubject wants of a subject that it says who it is in the field of its kind and in no other.
func flowSubject(j *judgement, p place) {
	s, kind := p.object(), text1(p.object(), "kind")
	kinds := [][2]string{{"ServiceAccount", "serviceAccount"}, {"User", "user"}, {"Group", "group"}}
	if !slices.ContainsFunc(kinds, func(k [2]string) bool { return k[0] == kind }) {
		j.unsupported(p.path.Child("kind"), kind, "Group", "ServiceAccount", "User")
		return
	}
	for _, k := range kinds {
		at, who := p.path.Child(k[1]), inner(s, k[1])
		switch {
		case k[0] != kind && who != nil:
			j.forbidden(at, fmt.Sprintf("%s is forbidden when subject kind is not '%s'", k[1], k[0]))
		case k[0] == kind && who == nil:
			j.required(at, fmt.Sprintf("%s is required when subject kind is '%s'", k[1], k[0]))
		case k[0] == kind:
			j.flowWho(kind, who, at)
		}
	}
}

func (j *judgement) flowWho(kind string, who object, path *field.Path) {
	name := text1(who, "name")
	if name == "" {
		j.required(path.Child("name"), "")
	}
	if kind != "ServiceAccount" {
		return
	}
	if name != "" && name != "*" {
		j.invalids(path.Child("name"), name, apivalidation.ValidateServiceAccountName(name, false))
	}
	if ns := text1(who, "namespace"); ns == "" {
		j.required(path.Child("namespace"), "must specify namespace for service account")
	} else {
		j.invalids(path.Child("namespace"), ns, apivalidation.ValidateNamespaceName(ns, false))
	}
}

func flowRule(j *judgement, p place) {
	r := p.object()
	if empty(r["resourceRules"]) && empty(r["nonResourceRules"]) {
		j.required(p.path, "at least one of resourceRules and nonResourceRules has to be non-empty")
	}
}

// requestVerbs are the verbs of requests that rules may be about.
var requestVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"}

// all judges a list in which "*" stands for everything, and alone. It tells whether it does.
func (j *judgement) all(path *field.Path, list []string, what string) bool {
	if !slices.Contains(list, "*") {
		return false
	}
	if len(list) > 1 {
		j.invalid(path, list, "if '*' is present, must not specify other "+what)
	}
	return true
}

func flowVerbs(j *judgement, p place) {
	list := texts(p.value)
	if len(list) == 0 || j.all(p.path, list, "verbs") {
		return
	}
	if slices.ContainsFunc(list, func(v string) bool { return !slices.Contains(requestVerbs, v) }) {
		j.add(field.NotSupported(p.path, list, requestVerbs))
	}
}

func flowURLs(j *judgement, p place) {
	list := texts(p.value)
	if j.all(p.path, list, "non-resource URLs") {
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
			j.invalid(p.path.Index(i), url, wrong)
		}
	}
}

func flowNamespaces(j *judgement, p place) {
	list := texts(p.value)
	if len(list) == 0 && !truth(p.in, "clusterScope") {
		j.required(p.path, "resource rules that are not cluster scoped must supply at least one namespace")
	}
	if j.all(p.path, list, "namespaces") {
		return
	}
	for i, ns := range list {
		for _, d := range apivalidation.ValidateNamespaceName(ns, false) {
			j.invalid(p.path.Index(i), ns, "each member of this list must be '*' or a DNS-1123 label; "+d)
		}
	}
}

func flowConditions(j *judgement, p place) {
	seen := map[string]bool{}
	for i, c := range objects(p.value) {
		kind, at := text1(c, "type"), p.path.Index(i).Child("type")
		if seen[kind] {
			j.duplicate(at, kind)
		}
		seen[kind] = true
		if kind == "" {
			j.required(at, "")
		}
	}
}

func priorityLevel(j *judgement, _ place) {
	spec, path, meta := inner(j.obj, "spec"), field.NewPath("spec"), inner(j.obj, "metadata")
	name, kind := text1(meta, "name"), text1(spec, "type")
	if _, ok := inner(meta, "annotations")["flowcontrol.k8s.io/preserve-zero-concurrency-shares"]; ok {
		j.forbidden(field.NewPath("metadata", "annotations"),
			"annotation 'flowcontrol.k8s.io/preserve-zero-concurrency-shares' is forbidden")
	}
	if (name == "exempt") != (kind == "Exempt") {
		j.invalid(path.Child("type"), kind, "must be 'Exempt' if and only if `name` is 'exempt'")
	}
	limited, exempt := inner(spec, "limited"), inner(spec, "exempt")
	switch kind {
	case "Exempt":
		if limited != nil {
			j.forbidden(path.Child("limited"), "must be nil if the type is not Limited")
		}
		j.block("ExemptLevel", exempt, nil, path.Child("exempt"))
	case "Limited":
		if exempt != nil {
			j.forbidden(path.Child("exempt"), "must be nil if the type is Limited")
		}
		if limited == nil {
			j.required(path.Child("limited"), "must not be empty when type is Limited")
		} else {
			j.block("LimitedLevel", limited, nil, path.Child("limited"))
		}
	case "":
		j.required(path.Child("type"), "")
	default:
		j.unsupported(path.Child("type"), kind, "Exempt", "Limited")
	}
	switch name {
	case "exempt": // what is in spec.exempt is the administrator's
		if kind != "Exempt" || limited != nil {
			j.invalid(path, spec, "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value")
		}
	case "catch-all":
		if !same(spec, object{"type": "Limited", "limited": object{
			"nominalConcurrencyShares": int64(5), "lendablePercent": int64(0),
			"limitResponse": object{"type": "Reject"},
		}}) {
			j.invalid(path, spec, "spec of 'catch-all' must equal the fixed value")
		}
	}
}

func exemptLevel(j *judgement, p place) {
	level := p.object()
	if n, _ := number(level, "nominalConcurrencyShares"); n < 0 {
		j.invalid(p.path.Child("nominalConcurrencyShares"), n, "must be a non-negative integer")
	}
	if n, _ := number(level, "lendablePercent"); n < 0 || n > 100 {
		j.invalid(p.path.Child("lendablePercent"), n, "must be between 0 and 100, inclusive")
	}
}

// limitedLevel judges how much a level may do at a time, and what becomes of the rest.
func limitedLevel(j *judgement, p place) {
	level := p.object()
	if n, _ := number(level, "nominalConcurrencyShares"); n < 0 {
		j.invalid(p.path.Child("nominalConcurrencyShares"), n, "must be a non-negative integer")
	}
	j.limitResponse(inner(level, "limitResponse"), p.path.Child("limitResponse"))
	if n, _ := number(level, "lendablePercent"); n < 0 || n > 100 {
		j.invalid(p.path.Child("lendablePercent"), n, "must be between 0 and 100, inclusive")
	}
	if n, _ := number(level, "borrowingLimitPercent"); n < 0 {
		j.invalid(p.path.Child("borrowingLimitPercent"), n, "if specified, must be a non-negative integer")
	}
}

func (j *judgement) limitResponse(response object, path *field.Path) {
	queuing := inner(response, "queuing")
	switch kind := text1(response, "type"); {
	case kind == "Reject" && queuing != nil:
		j.forbidden(path.Child("queuing"), "must be nil if limited.limitResponse.type is not Limited")
	case kind == "Reject":
	case kind == "Queue" && queuing == nil:
		j.required(path.Child("queuing"), "must not be empty if limited.limitResponse.type is Limited")
	case kind == "Queue":
		j.queuing(queuing, path.Child("queuing"))
	case kind == "":
		j.required(path.Child("type"), "")
	default:
		j.unsupported(path.Child("type"), kind, "Queue", "Reject")
	}
}

// queuing judges the queues of a level: a flow is dealt a hand of them by a hash of 60 bits, which must suffice to
// tell hands apart.
func (j *judgement) queuing(q object, path *field.Path) {
	const mostQueues, hashBits = 10 * 1000 * 1000, 60
	if n, _ := number(q, "queueLengthLimit"); n <= 0 {
		j.invalid(path.Child("queueLengthLimit"), n, "must be positive")
	}
	queues, _ := number(q, "queues")
	if queues <= 0 {
		j.invalid(path.Child("queues"), queues, "must be positive")
	} else if queues > mostQueues {
		j.invalid(path.Child("queues"), queues, fmt.Sprintf("must not be greater than %d", mostQueues))
	}
	hand, _ := number(q, "handSize")
	switch at := path.Child("handSize"); {
	case hand <= 0:
		j.invalid(at, hand, "must be positive")
	case hand > queues:
		j.invalid(at, hand, fmt.Sprintf("should not be greater than queues (%d)", queues))
	case int(math.Ceil(math.Log2(float64(queues))*float64(hand))) > hashBits:
		j.invalid(at, hand,
			fmt.Sprintf("required entropy bits of deckSize %d and handSize %d should not be greater than %d", queues,
				hand, hashBits))
	}
}
