package openapi

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// modelsJSON is generated from Kubernetes' models by TestModels of test/oracle/openapi, which also keeps it fresh.
//
//go:embed models.json
var modelsJSON []byte

// builtinJSON is generated from Kubernetes' documents of built-in kinds by TestBuiltinModels of test/oracle-builtins,
// which also keeps it fresh.
//
//go:embed builtin.json
var builtinJSON []byte

// models holds the parts shared by all documents: definitions of metadata and options, and the query parameters.
type models struct {
	// Parameters holds the parameters of each action, sorted by name.
	Parameters map[string][]parameter `json:"parameters"`
	// Common holds the parameters of all operations.
	Common []parameter `json:"common"`
	// Bodies holds the names of shared body parameters in v2, by their definition.
	Bodies map[string]string `json:"bodies"`
	// Options holds the parameters of subresources of built-in kinds that are not views of the object, by the kind of
	// their options. Path is the rest of the path, which some of them have.
	Options map[string][]parameter `json:"options"`
	Path    parameter              `json:"path"`
	// Known lists all group versions in Kubernetes, served or not.
	Known []groupVersion `json:"known"`
	// Schemas holds v3 definitions by name.
	Schemas map[string]json.RawMessage `json:"schemas"`

	encoded map[parameter][]byte // the JSON of parameters in v3
}

type groupVersion struct {
	Group   string `json:"group"`
	Version string `json:"version"`
}

// parameter of an operation. Its place is the query, or the path for "name" and "namespace".
type parameter struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`
	// Shared is the name of the parameter in a v2 document if all operations share it; "" if each has its own.
	Shared string `json:"shared"`
	// In is "path" for a parameter of the path with an unusual name.
	In string `json:"in"`
}

func (p parameter) inPath() bool { return p.Name == "name" || p.Name == "namespace" || p.In == "path" }

// loadModels parses the embedded data files, which are always valid.
func loadModels() *models {
	m := &models{}
	for _, data := range [][]byte{modelsJSON, builtinJSON} { // the second adds to the maps of the first
		if err := json.Unmarshal(data, m); err != nil {
			panic(fmt.Errorf("decode models of documents: %w", err))
		}
	}
	m.encodeParameters()
	return m
}

// Definitions that documents refer to.
const (
	metaPrefix        = "io.k8s.apimachinery.pkg.apis.meta.v1."
	objectMetaName    = metaPrefix + "ObjectMeta"
	listMetaName      = metaPrefix + "ListMeta"
	statusName        = metaPrefix + "Status"
	deleteOptionsName = metaPrefix + "DeleteOptions"
	patchName         = metaPrefix + "Patch"
	watchEventName    = metaPrefix + "WatchEvent"
	resourceListName  = metaPrefix + "APIResourceList"
	versionsName      = metaPrefix + "APIVersions"
	groupName         = metaPrefix + "APIGroup"
	groupListName     = metaPrefix + "APIGroupList"
	serverVersionName = "io.k8s.apimachinery.pkg.version.Info"
	scaleName         = "io.k8s.api.autoscaling.v1.Scale"

	refV2 = "#/definitions/"
	refV3 = "#/components/schemas/"
)

// closure returns the named definitions and all that they refer to. Names that models does not have are left out.
func (m *models) closure(names ...string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for len(names) > 0 {
		name := names[len(names)-1]
		names = names[:len(names)-1]
		schema, ok := m.Schemas[name]
		if _, done := out[name]; done || !ok {
			continue
		}
		out[name] = schema
		for _, part := range strings.Split(string(schema), `"`+refV3)[1:] {
			ref, _, _ := strings.Cut(part, `"`)
			names = append(names, ref)
		}
	}
	return out
}

// ofGroup names the definitions of options and events in a document of built-in kinds: each group version has them as
// kinds of its own.
func (m *models) ofGroup(definitions map[string]json.RawMessage, group, version string) error {
	for _, name := range []string{deleteOptionsName, watchEventName} {
		if definitions[name] == nil {
			continue
		}
		known := []groupVersion{{"", "v1"}}
		if group != "" {
			known = append(known, groupVersion{group, version})
		}
		s, err := m.sharedModel(m.Schemas[name])
		if err != nil {
			return fmt.Errorf("decode %s: %w", name, err)
		}
		s.AddExtension("x-kubernetes-group-version-kind", kindsOf(name, known))
		if definitions[name], err = appendSchema(nil, s); err != nil {
			return fmt.Errorf("encode %s: %w", name, err)
		}
	}
	return nil
}

// kindsOf returns a definition's kinds, one for each of the group versions that have it.
func kindsOf(name string, versions []groupVersion) []any {
	kinds := make([]any, len(versions))
	for i, gv := range versions {
		kinds[i] = groupVersionKind{gv.Group, gv.Version, strings.TrimPrefix(name, metaPrefix)}
	}
	return kinds
}

// closureV2 is closure in the terms of v2.
func (m *models) closureV2(names ...string) (map[string]*spec.Schema, error) {
	out := map[string]*spec.Schema{}
	for name, raw := range m.closure(names...) {
		s := &spec.Schema{}
		if err := json.Unmarshal(raw, s); err != nil {
			return nil, fmt.Errorf("decode %s: %w", name, err)
		}
		referV2(s)
		if name == deleteOptionsName || name == watchEventName {
			s.AddExtension("x-kubernetes-group-version-kind", kindsOf(name, m.Known))
		}
		out[name] = s
	}
	return out, nil
}

// referV2 converts the references of s to v2, where a reference may have siblings without an allOf, and removes
// defaults, which Kubernetes does not publish in v2.
func referV2(s *spec.Schema) {
	s.Default = nil
	if len(s.AllOf) == 1 && s.AllOf[0].Ref.String() != "" {
		s.Ref, s.AllOf = s.AllOf[0].Ref, nil
	}
	if ref, ok := strings.CutPrefix(s.Ref.String(), refV3); ok {
		s.Ref = spec.MustCreateRef(refV2 + ref)
	}
	for name, property := range s.Properties {
		referV2(&property)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		referV2(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		referV2(s.AdditionalProperties.Schema)
	}
}

// modelName returns the name of a custom kind's definition: its group's labels in reverse order, version, kind. If the
// group has the name of a Go package of Kubernetes (apiextensions.apis.pkg.apiextensions-apiserver.k8s.io), the kind
// gets kube-apiserver's suffix for duplicate names.
func modelName(group, version, kind string) string {
	labels := strings.Split(group, ".")
	slices.Reverse(labels)
	name := strings.Join(labels, ".") + "." + version + "." + kind
	if slices.ContainsFunc(packages, func(of string) bool { return strings.HasPrefix(name, of) }) {
		name += "_v2"
	}
	return name
}

// packages lists the prefixes of the names of built-in types.
var packages = []string{"io.k8s.api.", "io.k8s.apimachinery.", "io.k8s.apiextensions-apiserver.",
	"io.k8s.kube-aggregator."}

// builtinModelName returns the name of a built-in kind's definition, which Kubernetes derives from the Go package.
func builtinModelName(group, version, kind string) string {
	switch group {
	case "apiextensions.k8s.io":
		return "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions." + version + "." + kind
	case "apiregistration.k8s.io":
		return "io.k8s.kube-aggregator.pkg.apis.apiregistration." + version + "." + kind
	case "internal.apiserver.k8s.io":
		return "io.k8s.api.apiserverinternal." + version + "." + kind
	case "":
		return "io.k8s.api.core." + version + "." + kind
	}
	name, _, _ := strings.Cut(group, ".")
	return "io.k8s.api." + name + "." + version + "." + kind
}
