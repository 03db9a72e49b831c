package openapi

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// Forms that built-in kinds are read and written in.
var (
	anything      = []string{"*/*"}
	builtinForms  = []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf}
	streamedForms = slices.Concat(builtinForms,
		[]string{"application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"})
	patchForms = []string{string(types.JSONPatchType), string(types.MergePatchType),
		string(types.StrategicMergePatchType), string(types.ApplyYAMLPatchType)}
)

// asBuiltin turns the operation of a custom kind into that of a built-in one, as published by kube-apiserver.
func (p published) asBuiltin(op *operation, m *models) {
	op.consumes, op.produces = anything, builtinForms
	switch op.action {
	case "list":
		op.produces = streamedForms
		if p.resource.Answers("watch") {
			op.description = strings.Replace(op.description, "list", "list or watch", 1)
		}
	case "get":
		op.parameters = nil
	case "patch":
		op.consumes, op.codes = patchForms, []int{200, 201}
	case "delete":
		if p.version.ReturnsDeleted && !p.resource.IsNamespace() {
			op.answer = p.name(p.resource.Kind)
		}
	case "deletecollection":
		op.body, op.optional = deleteOptionsName, true
		op.parameters = slices.Concat(m.Parameters["delete"],
			slices.DeleteFunc(slices.Clone(m.Parameters["list"]), func(p parameter) bool {
				return p.Name == "watch" || p.Name == "allowWatchBookmarks"
			}))
		sortParameters(op.parameters)
	}
}

// share moves all parameters of a single operation to its path.
func (at *path) share() {
	if len(at.operations) == 1 {
		at.parameters = slices.Concat(at.parameters, at.operations[0].parameters)
		at.operations[0].parameters = nil
		sortParameters(at.parameters)
	}
}

// watches returns the old paths of watches, below "/watch".
func (p published) watches(m *models, root string) []path {
	if !p.resource.Answers("watch") {
		return nil
	}
	const instead = " deprecated: use the 'watch' parameter with a list operation instead"
	watch := func(at, action, id, description string) path {
		out := path{path: at, parameters: p.inPath(m, at, p.resource.Kind)}
		out.operations = []operation{{
			method: "get", action: action, id: id, description: description, tag: p.tag(), kind: p.kindOf(""),
			parameters: m.Parameters["list"],
			consumes:   anything, produces: streamedForms, answer: watchEventName, codes: []int{200},
		}}
		out.share()
		return out
	}
	list := "watch individual changes to a list of " + p.resource.Kind + "." + instead + "."
	item := "watch changes to an object of kind " + p.resource.Kind + "." + instead +
		", filtered to a single item with the 'fieldSelector' parameter."
	base, scoped := root+"/watch/"+p.resource.Plural, p.resource.Namespaced
	var out []path
	if scoped {
		out = append(out, watch(base, "watchlist", p.id("watch", false, "")+"ListForAllNamespaces", list))
		base = root + "/watch/namespaces/{namespace}/" + p.resource.Plural
	}
	return append(out, watch(base, "watchlist", p.id("watch", scoped, "")+"List", list),
		watch(base+"/{name}", "watch", p.id("watch", scoped, ""), item))
}

// others returns the paths of a subresource with another kind than the object.
func (p published) others(m *models, base string, s *catalog.Subresource) []path {
	at, kind := base+"/{name}/"+s.Name, p.kindOf(s.Name)
	if s.Name == "log" {
		op := operation{
			method: "get", action: "get", id: p.id("read", p.resource.Namespaced, s.Name),
			description: p.describe("read", s.Name), tag: p.tag(), kind: kind,
			parameters: m.Options["PodLogOptions"], consumes: anything,
			produces: append([]string{"text/plain"}, builtinForms...), codes: []int{200},
		}
		out := path{path: at, parameters: p.inPath(m, at, kind.Kind), operations: []operation{op}}
		out.share()
		return []path{out}
	}
	if _, connects := m.Options[kind.Kind]; connects {
		return p.connections(m, at, s, kind)
	}
	name := builtinModelName(kind.Group, kind.Version, kind.Kind)
	op := operation{
		method: "post", action: "post", id: p.id("create", p.resource.Namespaced, s.Name),
		description: p.describe("create", s.Name), tag: p.tag(), kind: kind,
		parameters: m.Parameters["post"], body: name, consumes: anything, produces: builtinForms, answer: name,
		codes: []int{200, 201, 202},
	}
	out := path{path: at, parameters: p.inPath(m, at, kind.Kind), operations: []operation{op}}
	out.share()
	return []path{out}
}

// connections returns the paths of a connection through the server.
func (p published) connections(m *models, at string, s *catalog.Subresource, kind groupVersionKind) []path {
	methods := []string{"get", "post"}
	if s.Name == "proxy" {
		methods = []string{"delete", "get", "head", "options", "patch", "post", "put"}
	}
	connect := func(at, suffix string, more ...parameter) path {
		out := path{path: at}
		for _, c := range slices.Concat(p.inPath(m, at, kind.Kind), m.Options[kind.Kind], more) {
			if c.Name != "pretty" {
				out.parameters = append(out.parameters, c)
			}
		}
		sortParameters(out.parameters)
		for _, method := range methods {
			out.operations = append(out.operations, operation{
				method: method, action: "connect", id: p.id("connect "+method, p.resource.Namespaced, s.Name) + suffix,
				tag: p.tag(), kind: kind,
				description: "connect " + strings.ToUpper(method) + " requests to " + s.Name + " of " + p.resource.Kind,
				consumes:    anything, produces: anything, codes: []int{200},
			})
		}
		return out
	}
	out := []path{connect(at, "")}
	if s.Name == "proxy" {
		out = append(out, connect(at+"/{path}", "WithPath", m.Path))
	}
	return out
}

// available returns the path that lists the resources of the group version.
func (p published) available(root string) path {
	return path{path: root + "/", operations: []operation{{
		method: "get", id: "get" + camel(p.shortGroup(), true) + camel(p.version.Name, true) + "APIResources",
		description: "get available resources", tag: p.tag(),
		consumes: builtinForms, produces: builtinForms, answer: resourceListName, codes: []int{200},
	}}}
}
