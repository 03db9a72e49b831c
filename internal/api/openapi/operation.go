package openapi

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/types"
)

// path is one URL path of a resource with its operations, independent of the edition.
type path struct {
	path       string
	parameters []parameter // of all operations
	operations []operation
}

// operation is one method of a path.
type operation struct {
	method, action, id, description string
	tag                             string
	parameters                      []parameter // in addition to the path's
	body                            string      // definition of the request body; "" for none
	optional                        bool        // the body may be omitted
	kind                            groupVersionKind
	consumes, produces              []string
	answer                          string // definition of the response body; "" is a text
	codes                           []int  // status codes of responses with that body
}

// The actions of Kubernetes, in the order of HTTP methods below one path.
var (
	collectionActions = []action{
		{"get", "list", "list", "list"}, {"post", "post", "create", "create"},
		{"delete", "deletecollection", "deletecollection", "deletecollection"},
	}
	itemActions = []action{
		{"get", "get", "read", "get"}, {"put", "put", "replace", "update"}, {"delete", "delete", "delete", "delete"},
		{"patch", "patch", "patch", "patch"},
	}
	changeActions = []action{{"get", "get", "read", ""}, {"put", "put", "replace", ""}, {"patch", "patch", "patch", ""}}
)

// action is one operation of a path: its HTTP method, x-kubernetes-action, the operation's word, and the required verb
// of catalog.Resource.Verbs ("" for subresources, which have their own verbs).
type action struct{ method, name, word, verb string }

// paths returns the paths of the resource.
func (p published) paths(m *models) []path {
	root := p.root()
	var out []path
	if !p.resource.Custom() {
		out = append(p.watches(m, root), p.available(root))
	}
	base := root + "/" + p.resource.Plural
	if p.resource.Namespaced {
		all := p.path(m, base, "", []action{collectionActions[0]})
		for i := range all.operations {
			all.operations[i].id += "ForAllNamespaces"
		}
		all.share()
		out = append(out, all)
		base = root + "/namespaces/{namespace}/" + p.resource.Plural
	}
	out = append(out, p.path(m, base, "", collectionActions), p.path(m, base+"/{name}", "", itemActions))
	if p.version.Status {
		out = append(out, p.path(m, base+"/{name}/status", "status", changeActions))
	}
	if p.version.Scale != nil {
		out = append(out, p.path(m, base+"/{name}/scale", "scale", changeActions))
	}
	for _, s := range p.resource.Subresources {
		if !s.Object {
			out = append(out, p.others(m, base, &s)...)
			continue
		}
		actions := changeActions
		if !slices.Contains(s.Verbs, "get") {
			actions = changeActions[1:2]
		}
		out = append(out, p.path(m, base+"/{name}/"+s.Name, s.Name, actions))
	}
	return slices.DeleteFunc(out, func(p path) bool { return len(p.operations) == 0 })
}

func (p published) path(m *models, at, subresource string, actions []action) path {
	kind := p.kindOf(subresource).Kind
	out := path{path: at, parameters: p.inPath(m, at, kind)}
	for _, a := range actions {
		if a.verb != "" && p.resource.Verbs != nil && !slices.Contains(p.resource.Verbs, a.verb) {
			continue
		}
		op := p.operation(m, a, subresource)
		op.id = p.id(a.word, strings.Contains(at, "{namespace}"), subresource)
		out.operations = append(out.operations, op)
	}
	if !p.resource.Custom() {
		out.share()
	}
	return out
}

func (p published) root() string {
	if p.resource.Group == "" {
		return "/api/" + p.version.Name
	}
	return "/apis/" + p.resource.Group + "/" + p.version.Name
}

// kindOf returns the kind of a subresource. In the documents, the scale of a custom kind has that kind.
func (p published) kindOf(subresource string) groupVersionKind {
	own := groupVersionKind{p.resource.Group, p.version.Name, p.resource.Kind}
	if p.resource.Custom() {
		return own
	}
	if subresource == "scale" {
		return groupVersionKind{"autoscaling", "v1", "Scale"}
	}
	s := p.resource.Subresource(subresource)
	if s == nil || s.Object {
		return own
	}
	if s.Kind.Version != "" {
		own.Group, own.Version = s.Kind.Group, s.Kind.Version
	}
	own.Kind = s.Kind.Kind
	return own
}

// inPath returns the parameters that every operation of a path has.
func (p published) inPath(m *models, at, kind string) []parameter {
	var out []parameter
	if strings.Contains(at, "{name}") {
		out = append(out, parameter{Name: "name", Type: "string", Description: "name of the " + kind})
	}
	for _, c := range m.Common {
		if !c.inPath() || strings.Contains(at, "{"+c.Name+"}") {
			out = append(out, c)
		}
	}
	sortParameters(out)
	return out
}

func (p published) operation(m *models, a action, subresource string) operation {
	own := p.name(p.resource.Kind)
	if subresource == "scale" {
		own = scaleName
	}
	op := operation{
		method: a.method, action: a.name, description: p.describe(a.word, subresource), tag: p.tag(),
		kind:       p.kindOf(subresource),
		parameters: m.Parameters[a.name],
		consumes:   produces, produces: produces,
		answer: own, codes: []int{200},
	}
	switch a.name {
	case "list":
		op.answer = p.name(p.resource.ListKind)
	case "post":
		op.body, op.codes = own, []int{200, 201, 202}
	case "put":
		op.body, op.codes = own, []int{200, 201}
	case "patch":
		op.body = patchName
		op.consumes = []string{string(types.JSONPatchType), string(types.MergePatchType),
			string(types.ApplyYAMLPatchType)}
	case "delete":
		op.body, op.optional, op.answer, op.codes = deleteOptionsName, true, statusName, []int{200, 202}
	case "deletecollection":
		op.answer = statusName
	}
	if !p.resource.Custom() {
		p.asBuiltin(&op, m)
	}
	return op
}

// id returns an operation ID, such as "replaceStableExampleComV1NamespacedCronTabStatus", which becomes a method name
// in generated clients.
func (p published) id(word string, inNamespace bool, subresource string) string {
	scope := ""
	if inNamespace {
		scope = "Namespaced"
	}
	word, rest, _ := strings.Cut(word, " ") // the group goes between
	rest = camel(rest, true)
	if word == "deletecollection" {
		word, rest = "delete", "Collection"
	}
	target := rest + scope + p.resource.Kind + camel(subresource, true)
	// As in Kubernetes, a kind in small letters gets a capital only where it follows the version.
	return word + camel(p.shortGroup(), true) + camel(p.version.Name, true) + strings.ToUpper(target[:1]) + target[1:]
}

// tag groups the operations of a version: "stableExampleCom_v1".
func (p published) tag() string {
	return camel(p.shortGroup(), false) + "_" + camel(p.version.Name, false)
}

func (p published) shortGroup() string {
	if p.resource.Group == "" {
		return "core"
	}
	return strings.TrimSuffix(p.resource.Group, ".k8s.io")
}

// camel removes characters from s that are invalid in identifiers, and capitalizes the letters behind them.
func camel(s string, raise bool) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case !unicode.IsLetter(r) && r != '_' && (i == 0 || !unicode.IsDigit(r)):
			raise = true
		case raise:
			b.WriteRune(unicode.ToUpper(r))
			raise = false
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// describe is the sentence of an operation.
func (p published) describe(word, subresource string) string {
	of := ""
	if subresource != "" {
		of = " " + subresource + " of"
	}
	kind := p.resource.Kind
	switch word {
	case "list":
		return "list" + of + " objects of kind " + kind
	case "read", "replace":
		return word + of + " the specified " + kind
	case "patch":
		return "partially update" + of + " the specified " + kind
	case "deletecollection":
		return "delete collection of " + kind
	}
	return word + of + article(kind) + kind
}

func article(kind string) string {
	switch {
	case strings.HasSuffix(kind, "s") && !strings.HasSuffix(kind, "ss"):
		return " " // probably a plural
	case strings.ContainsRune("aeiouAEIOU", rune(kind[0])):
		return " an "
	}
	return " a "
}

func sortParameters(ps []parameter) {
	slices.SortStableFunc(ps, func(a, b parameter) int { // with equal names, the path's come first
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.In, b.In)*-1)
	})
}
