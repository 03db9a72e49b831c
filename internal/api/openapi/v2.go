package openapi

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"strconv"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// The shape of an OpenAPI 2.0 ("Swagger") document, as far as Kubernetes uses it.
type (
	// pathV2 holds "parameters" and an operationV2 for each method.
	pathV2      map[string]any
	operationV2 struct {
		Description string                `json:"description"`
		Consumes    []string              `json:"consumes,omitempty"`
		Produces    []string              `json:"produces"`
		Schemes     []string              `json:"schemes"`
		Tags        []string              `json:"tags"`
		ID          string                `json:"operationId"`
		Parameters  []parameterV2         `json:"parameters,omitempty"`
		Responses   map[string]responseV2 `json:"responses"`
		Action      string                `json:"x-kubernetes-action,omitempty"`
		Kind        *groupVersionKind     `json:"x-kubernetes-group-version-kind,omitempty"`
	}
	// parameterV2 is a parameter, or a reference to a shared one.
	parameterV2 struct {
		Ref         string       `json:"$ref,omitempty"`
		UniqueItems bool         `json:"uniqueItems,omitempty"`
		Type        string       `json:"type,omitempty"`
		Description string       `json:"description,omitempty"`
		Name        string       `json:"name,omitempty"`
		In          string       `json:"in,omitempty"`
		Required    bool         `json:"required,omitempty"`
		Schema      *referenceV2 `json:"schema,omitempty"`
	}
	responseV2 struct {
		Description string       `json:"description"`
		Schema      *referenceV2 `json:"schema,omitempty"`
	}
	referenceV2 struct {
		Ref  string `json:"$ref,omitempty"`
		Type string `json:"type,omitempty"`
	}
)

// pathsV2 returns the "paths" of the v2 document for g. They are quick to make, because they need no schema.
func (h *Handler) pathsV2(g *catalog.Group) map[string]pathV2 {
	m := h.models()
	paths := map[string]pathV2{}
	if at, ok := groupPath(g); ok {
		paths[at.path] = at.v2(m)
	}
	for p := range publishedV2(g) {
		for _, at := range p.paths(m) {
			paths[at.path] = at.v2(m)
		}
	}
	return paths
}

// definitionsV2 returns the "definitions" of the v2 document for g, one of groups, without definitions in another
// group's part or in the shared part. h.building[0] is held.
func (h *Handler) definitionsV2(groups []*catalog.Group, g *catalog.Group) (map[string]*spec.Schema, error) {
	homes, err := h.homesV2(groups)
	if err != nil {
		return nil, err
	}
	definitions := map[string]*spec.Schema{}
	for p := range publishedV2(g) {
		p.elsewhere = func(name string) bool {
			home, known := homes[name]
			return known && home != g.Name
		}
		schemas, err := p.schemas(h.models())
		if err != nil {
			return nil, err
		}
		maps.Copy(definitions, schemas)
	}
	return definitions, nil
}

// sharedHome is the home of definitions that do not depend on the catalog. No group has this name.
const sharedHome = "*"

// homesV2 returns the home of each built-in type's definition in the v2 document, since each must occur only once: the
// shared part, or the first group that refers to it. The references of a definition have no later home than the
// definition, so a caller that omits it need not follow them. Built-in kinds never change, so this is computed once.
// h.building[0] is held.
func (h *Handler) homesV2(groups []*catalog.Group) (map[string]string, error) {
	if h.homes != nil {
		return h.homes, nil
	}
	m, homes := h.models(), map[string]string{}
	for name := range m.closure(sharedRootsV2()...) {
		homes[name] = sharedHome
	}
	for _, g := range groups {
		for p := range publishedV2(g) {
			if p.version.Models == nil {
				continue
			}
			todo := p.builtinRoots(m)
			for len(todo) > 0 {
				name := todo[len(todo)-1]
				todo = todo[:len(todo)-1]
				if _, known := homes[name]; known {
					continue
				}
				_, refs, err := p.builtin(m, name)
				if err != nil {
					return nil, err
				}
				homes[name], todo = g.Name, append(todo, refs...)
			}
		}
	}
	h.homes = homes
	return homes, nil
}

// publishedV2 yields each resource of g in each version.
func publishedV2(g *catalog.Group) iter.Seq[published] {
	return func(yield func(published) bool) {
		for _, gv := range g.Versions {
			for _, r := range gv.Resources {
				if !yield(published{resource: r, version: r.Version(gv.Name), v2: true}) {
					return
				}
			}
		}
	}
}

func sharedRootsV2() []string {
	return []string{objectMetaName, listMetaName, statusName, deleteOptionsName, patchName, scaleName, watchEventName,
		resourceListName, versionsName, groupListName, serverVersionName}
}

// sharedV2 returns the members of "paths", "definitions" and "parameters" that do not depend on the catalog, as JSON
// without enclosing braces.
func (h *Handler) sharedV2() (paths, definitions, parameters []byte, err error) {
	m := h.models()
	general := map[string]pathV2{}
	for _, at := range generalPaths() {
		general[at.path] = at.v2(m)
	}
	if paths, err = members(general); err != nil {
		return nil, nil, nil, err
	}
	schemas, err := m.closureV2(sharedRootsV2()...)
	if err != nil {
		return nil, nil, nil, err
	}
	if definitions, err = encodeDefinitions(schemas); err != nil {
		return nil, nil, nil, err
	}
	shared := map[string]parameterV2{}
	add := func(ps []parameter) {
		for _, p := range ps {
			if p.Shared != "" {
				shared[p.Shared] = parameterInV2(p)
			}
		}
	}
	add(m.Common)
	for _, ps := range m.Parameters {
		add(ps)
	}
	for _, ps := range m.Options {
		add(ps)
	}
	add([]parameter{m.Path})
	for definition, name := range m.Bodies {
		shared[name] = parameterV2{
			Name: "body", In: "body", Required: definition != deleteOptionsName,
			Schema: &referenceV2{Ref: refV2 + definition},
		}
	}
	parameters, err = members(shared)
	return paths, definitions, parameters, err
}

// members encodes m without the braces around it.
func members[V any](m map[string]V) ([]byte, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode OpenAPI v2: %w", err)
	}
	return b[1 : len(b)-1], nil
}

func (at path) v2(m *models) pathV2 {
	out := pathV2{}
	if len(at.parameters) > 0 {
		out["parameters"] = parametersV2(at.parameters)
	}
	for _, op := range at.operations {
		o := operationV2{
			Description: op.description, Consumes: op.consumes, Produces: op.produces, Schemes: []string{"https"},
			Tags: []string{op.tag}, ID: op.id,
			Action: op.action, Kind: op.about(),
			Responses: map[string]responseV2{"401": {Description: codeText(401)}},
		}
		if shared, ok := m.Bodies[op.body]; ok {
			o.Parameters = append(o.Parameters, parameterV2{Ref: "#/parameters/" + shared})
		} else if op.body != "" {
			o.Parameters = append(o.Parameters,
				parameterV2{
					Name: "body", In: "body", Required: !op.optional, Schema: &referenceV2{Ref: refV2 + op.body},
				})
		}
		o.Parameters = append(o.Parameters, parametersV2(op.parameters)...)
		answer := &referenceV2{Type: "string"}
		if op.answer != "" {
			answer = &referenceV2{Ref: refV2 + op.answer}
		}
		for _, code := range op.codes {
			o.Responses[strconv.Itoa(code)] = responseV2{Description: codeText(code), Schema: answer}
		}
		out[op.method] = o
	}
	return out
}

func parametersV2(ps []parameter) []parameterV2 {
	out := make([]parameterV2, len(ps))
	for i, p := range ps {
		if p.Shared != "" {
			out[i] = parameterV2{Ref: "#/parameters/" + p.Shared}
		} else {
			out[i] = parameterInV2(p)
		}
	}
	return out
}

func parameterInV2(p parameter) parameterV2 {
	out := parameterV2{UniqueItems: true, Type: p.Type, Description: p.Description, Name: p.Name, In: "query"}
	if p.inPath() {
		out.In, out.Required = "path", true
	}
	return out
}
