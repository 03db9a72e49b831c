package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// The shape of an OpenAPI 3.0 document, as far as Kubernetes uses it.
type (
	documentV3 struct {
		OpenAPI    string            `json:"openapi"`
		Info       info              `json:"info"`
		Paths      map[string]pathV3 `json:"paths"`
		Components struct {
			Schemas         map[string]any            `json:"schemas,omitempty"` // *spec.Schema or json.RawMessage
			SecuritySchemes map[string]securityScheme `json:"securitySchemes,omitempty"`
		} `json:"components"`
	}
	securityScheme struct {
		Type        string `json:"type"`
		Description string `json:"description"`
		Name        string `json:"name"`
		In          string `json:"in"`
	}
	info struct {
		Title   string `json:"title"`
		Version string `json:"version"`
	}
	// pathV3 holds "parameters" and an operationV3 for each method.
	pathV3      map[string]any
	operationV3 struct {
		Tags        []string              `json:"tags"`
		Description string                `json:"description"`
		ID          string                `json:"operationId"`
		Parameters  []parameterV3         `json:"parameters,omitempty"`
		Body        *bodyV3               `json:"requestBody,omitempty"`
		Responses   map[string]responseV3 `json:"responses"`
		Action      string                `json:"x-kubernetes-action,omitempty"`
		Kind        *groupVersionKind     `json:"x-kubernetes-group-version-kind,omitempty"`
	}
	parameterV3 struct {
		Name        string   `json:"name"`
		In          string   `json:"in"`
		Description string   `json:"description,omitempty"`
		Required    bool     `json:"required,omitempty"`
		Schema      schemaV3 `json:"schema"`
	}
	schemaV3 struct {
		Type        string `json:"type,omitempty"`
		UniqueItems bool   `json:"uniqueItems,omitempty"`
		Ref         string `json:"$ref,omitempty"`
	}
	bodyV3 struct {
		Content  map[string]mediaV3 `json:"content"`
		Required bool               `json:"required,omitempty"`
	}
	responseV3 struct {
		Description string             `json:"description"`
		Content     map[string]mediaV3 `json:"content,omitempty"`
	}
	mediaV3 struct {
		Schema schemaV3 `json:"schema"`
	}
)

// bearerToken is the authentication of clients, in the documents of built-in kinds.
var bearerToken = map[string]securityScheme{
	"BearerToken": {Type: "apiKey", Description: "Bearer Token authentication", Name: "authorization", In: "header"},
}

// buildV3 returns the JSON of the v3 document of gv, a version of the group named group.
func (h *Handler) buildV3(group string, gv *catalog.GroupVersion) ([]byte, error) {
	m := h.models()
	parts := make([]partV3, len(gv.Resources))
	parallel(len(parts), func(i int) {
		r := gv.Resources[i]
		parts[i].build(published{resource: r, version: r.Version(gv.Name)}, m)
	})
	schemas, paths := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	shared, builtin, size := []string{objectMetaName}, false, 1<<17
	for i, part := range parts {
		if part.err != nil {
			return nil, fmt.Errorf("encode OpenAPI v3 of %s/%s: %w", group, gv.Name, part.err)
		}
		builtin = builtin || !gv.Resources[i].Custom()
		shared = append(shared, part.shared...)
		maps.Copy(schemas, part.schemas)
		maps.Copy(paths, part.paths)
		size += part.size
	}
	maps.Copy(schemas, m.closure(shared...))
	head := info{"Kubernetes CRD Swagger", "v0.1.0"}
	if builtin {
		head = info{"Kubernetes", h.options.Version}
		if err := m.ofGroup(schemas, group, gv.Name); err != nil {
			return nil, err
		}
	}
	w := memberWriter{dst: append(make([]byte, 0, size), '{')}
	w.text("openapi", "3.0.0")
	w.value("info", head)
	w.key("paths")
	w.dst = appendObject(w.dst, paths)
	w.key("components")
	components := memberWriter{dst: append(w.dst, '{')}
	components.key("schemas")
	components.dst = appendObject(components.dst, schemas)
	if builtin {
		components.value("securitySchemes", bearerToken)
	}
	return append(components.dst, "}}"...), components.err
}

// partV3 is one resource's part of a document.
type partV3 struct {
	schemas, paths map[string]json.RawMessage
	shared         []string // definitions common to all kinds
	size           int      // of schemas and paths
	err            error
}

// build builds the part of p.
func (part *partV3) build(p published, m *models) {
	r := p.resource
	if !r.Custom() {
		part.shared = append(part.shared, resourceListName)
		if r.Answers("watch") {
			part.shared = append(part.shared, watchEventName)
		}
	}
	if r.Answers("list") {
		part.shared = append(part.shared, listMetaName, statusName, deleteOptionsName, patchName)
	}
	if p.version.Scale != nil {
		part.shared = append(part.shared, scaleName)
	}
	part.schemas, part.paths = map[string]json.RawMessage{}, map[string]json.RawMessage{}
	add := func(to map[string]json.RawMessage, name string, encoded []byte, err error) {
		if err != nil {
			part.err = fmt.Errorf("%s: %w", name, err)
		}
		to[name] = encoded
		part.size += len(name) + len(encoded) + 8
	}
	if p.version.Models == nil {
		buffer, err := p.appendKind(make([]byte, 0, 1<<15))
		if err != nil {
			err = fmt.Errorf("schema of %s in version %s: %w", r.Qualified(), p.version.Name, err)
		}
		add(part.schemas, p.name(r.Kind), buffer, err)
		buffer, err = appendSchema(nil, p.list())
		add(part.schemas, p.name(r.ListKind), buffer, err)
	} else {
		schemas, err := p.builtins(m)
		if err != nil {
			part.err = err
			return
		}
		for name, s := range schemas {
			encoded, err := appendSchema(nil, s)
			add(part.schemas, name, encoded, err)
		}
	}
	for _, at := range p.paths(m) {
		add(part.paths, at.path, at.appendV3(nil, m), nil)
	}
}

func (at path) v3() pathV3 {
	out := pathV3{}
	if len(at.parameters) > 0 {
		out["parameters"] = parametersV3(at.parameters)
	}
	for _, op := range at.operations {
		o := operationV3{
			Tags: []string{op.tag}, Description: op.description, ID: op.id, Parameters: parametersV3(op.parameters),
			Action:    op.action,
			Kind:      op.about(),
			Responses: map[string]responseV3{"401": {Description: codeText(401)}},
		}
		if op.body != "" {
			o.Body = &bodyV3{Content: contentV3(op.body, op.consumes), Required: !op.optional}
		}
		for _, code := range op.codes {
			o.Responses[strconv.Itoa(code)] = responseV3{
				Description: codeText(code), Content: contentV3(op.answer, op.produces),
			}
		}
		out[op.method] = o
	}
	return out
}

// about returns the kind of the operation, nil if it has none.
func (op operation) about() *groupVersionKind {
	if op.action == "" {
		return nil
	}
	return &op.kind
}

// produces lists the response media types of every operation.
var produces = []string{"application/json", "application/yaml"}

func contentV3(definition string, types []string) map[string]mediaV3 {
	schema := schemaV3{Type: "string"}
	if definition != "" {
		schema = schemaV3{Ref: refV3 + definition}
	}
	out := map[string]mediaV3{}
	for _, t := range types {
		out[t] = mediaV3{schema}
	}
	return out
}

func parametersV3(ps []parameter) []parameterV3 {
	out := make([]parameterV3, len(ps))
	for i, p := range ps {
		out[i] = parameterV3{
			Name: p.Name, In: "query", Description: p.Description, Schema: schemaV3{Type: p.Type, UniqueItems: true},
		}
		if p.inPath() {
			out[i].In, out[i].Required = "path", true
		}
	}
	return out
}

func codeText(code int) string {
	switch code {
	case 201:
		return "Created"
	case 202:
		return "Accepted"
	case 401:
		return "Unauthorized"
	}
	return "OK"
}
