package openapi

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// Documents for paths without objects: the list of groups, the version, the keys of service accounts. In v2 these are
// paths among the others; in v3 each has its own document, named after its path.

// generalPaths returns the paths that do not depend on the catalog.
func generalPaths() []path {
	const keys = "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)"
	const configuration = "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'"
	onlyJSON := []string{runtime.ContentTypeJSON}
	return []path{
		reading("/.well-known/openid-configuration/",
			operation{
				id: "getServiceAccountIssuerOpenIDConfiguration", description: configuration, tag: "WellKnown",
				produces: onlyJSON,
			}),
		reading("/api/",
			operation{
				id: "getCoreAPIVersions", description: "get available API versions", tag: "core",
				consumes: builtinForms, produces: builtinForms, answer: versionsName,
			}),
		reading("/apis/",
			operation{
				id: "getAPIVersions", description: "get available API versions", tag: "apis", consumes: builtinForms,
				produces: builtinForms, answer: groupListName,
			}),
		reading("/openid/v1/jwks/",
			operation{
				id: "getServiceAccountIssuerOpenIDKeyset", description: keys, tag: "openid",
				produces: []string{"application/jwk-set+json"},
			}),
		reading("/version/",
			operation{
				id: "getCodeVersion", description: "get the version information for this server", tag: "version",
				consumes: onlyJSON, produces: onlyJSON, answer: serverVersionName,
			}),
	}
}

// groupPath is the path that describes a group of built-in kinds; false if g is none, or the core group.
func groupPath(g *catalog.Group) (path, bool) {
	own := slices.IndexFunc(g.Versions, func(gv *catalog.GroupVersion) bool { return gv.Remote == nil })
	if g.Name == "" || own < 0 || g.Versions[own].Resources[0].Custom() {
		return path{}, false
	}
	short := strings.TrimSuffix(g.Name, ".k8s.io")
	return reading("/apis/"+g.Name+"/", operation{
		id: "get" + camel(short, true) + "APIGroup", description: "get information of a group",
		tag:      camel(short, false),
		consumes: builtinForms, produces: builtinForms, answer: groupName,
	}), true
}

// reading returns a path with a GET only.
func reading(at string, op operation) path {
	op.method, op.codes = "get", []int{200}
	return path{path: at, operations: []operation{op}}
}

// generalDocuments returns the paths that have a v3 document of their own, by its name.
func generalDocuments(snap *catalog.Snapshot) map[string]path {
	all := generalPaths()
	for _, g := range snap.Groups() {
		if at, ok := groupPath(g); ok {
			all = append(all, at)
		}
	}
	out := make(map[string]path, len(all))
	for _, at := range all {
		out[strings.Trim(at.path, "/")] = at
	}
	return out
}

// generalHash returns the hash of a general document.
func (h *Handler) generalHash(name string) string {
	return fmt.Sprintf("%X", sha512.Sum512(fmt.Appendf(nil, "%s\n%s\n%s", format, h.options.Version, name)))
}

// buildGeneral returns the JSON of the v3 document of a path.
func (h *Handler) buildGeneral(at path) ([]byte, error) {
	doc := documentV3{
		OpenAPI: "3.0.0", Info: info{"Kubernetes", h.options.Version}, Paths: map[string]pathV3{at.path: at.v3()},
	}
	doc.Components.SecuritySchemes = bearerToken
	doc.Components.Schemas = map[string]any{}
	for name, s := range h.models().closure(at.operations[0].answer) {
		doc.Components.Schemas[name] = s
	}
	body, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("encode OpenAPI v3 of %s: %w", at.path, err)
	}
	return body, nil
}
