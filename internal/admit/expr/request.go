package expr

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/admit"
)

// Request returns the variable request: the AdmissionRequest of a write, seen as resource and kind, without its
// objects.
func Request(a *admit.Attributes, resource schema.GroupVersionResource, kind schema.GroupVersionKind) map[string]any {
	requested := schema.GroupVersionResource{
		Group: a.Resource.Group, Version: a.Version.Name, Resource: a.Resource.Plural,
	}
	r := map[string]any{
		"uid":                "",
		"kind":               kindObject(kind),
		"resource":           resourceObject(resource),
		"requestKind":        kindObject(a.Kind),
		"requestResource":    resourceObject(requested),
		"subResource":        a.Subresource,
		"requestSubResource": a.Subresource,
		"name":               a.Name,
		"namespace":          a.Namespace,
		"operation":          string(a.Operation),
		"userInfo":           UserInfo(a),
		"object":             nil,
		"oldObject":          nil,
		"dryRun":             a.DryRun,
		"options":            nil,
	}
	for _, key := range []string{"subResource", "requestSubResource", "name", "namespace"} {
		if r[key] == "" {
			delete(r, key)
		}
	}
	if a.Options != nil {
		r["options"] = a.Options()
	}
	return r
}

// UserInfo returns the user of a request in the form of an AdmissionRequest.
func UserInfo(a *admit.Attributes) map[string]any {
	info := map[string]any{}
	if a.User == nil {
		return info
	}
	if name := a.User.GetName(); name != "" {
		info["username"] = name
	}
	if uid := a.User.GetUID(); uid != "" {
		info["uid"] = uid
	}
	if groups := a.User.GetGroups(); len(groups) > 0 {
		info["groups"] = texts(groups)
	}
	if extra := a.User.GetExtra(); len(extra) > 0 {
		all := make(map[string]any, len(extra))
		for key, values := range extra {
			all[key] = texts(values)
		}
		info["extra"] = all
	}
	return info
}

func texts(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

func kindObject(k schema.GroupVersionKind) map[string]any {
	return map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind}
}

func resourceObject(r schema.GroupVersionResource) map[string]any {
	return map[string]any{"group": r.Group, "version": r.Version, "resource": r.Resource}
}
