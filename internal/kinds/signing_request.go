package kinds

import (
	"maps"
	"time"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// prepareSigningRequestCreate says who asks, whatever the object says, and that nobody has decided.
func prepareSigningRequestCreate(obj catalog.Object, e catalog.Env) {
	spec := child(obj, "spec")
	for _, name := range []string{"username", "uid", "groups", "extra"} {
		delete(spec, name)
	}
	if u := e.User; u != nil {
		spec["username"] = u.GetName()
		if uid := u.GetUID(); uid != "" {
			spec["uid"] = uid
		}
		if groups := u.GetGroups(); len(groups) > 0 {
			spec["groups"] = anyList(groups)
		}
		extra := catalog.Object{}
		for key, values := range u.GetExtra() {
			extra[key] = anyList(values)
		}
		if len(extra) > 0 {
			spec["extra"] = extra
		}
	}
	obj["status"] = catalog.Object{}
}

// prepareSigningRequestUpdate lets an update change metadata alone, one of approval the conditions, and one of status
// everything there but Approved and Denied: adding or removing those by way of status is left to be refused.
func prepareSigningRequestUpdate(obj, old catalog.Object, subresource string, e catalog.Env) {
	keep(obj, old, "spec")
	if subresource == "" {
		keep(obj, old, "status")
		return
	}
	oldStatus, _ := old["status"].(map[string]any)
	before := catalog.Objects(oldStatus["conditions"])
	conditions := catalog.Objects(child(obj, "status")["conditions"])
	if subresource == "approval" {
		status := copyOf(oldStatus)
		setOrDelete(status, "conditions", child(obj, "status")["conditions"])
		obj["status"] = status
	} else {
		for _, decision := range []string{"Approved", "Denied"} {
			if had, has := ofType(before, decision), ofType(conditions, decision); len(had) == len(has) {
				for i := range has {
					clear(has[i])
					maps.Copy(has[i], had[i])
				}
			}
		}
	}
	stampConditions(conditions, before, e.Now)
}

func setOrDelete(obj catalog.Object, name string, v any) {
	if v == nil {
		delete(obj, name)
	} else {
		obj[name] = v
	}
}

// ofType returns the conditions of a type.
func ofType(conditions []catalog.Object, name string) []catalog.Object {
	var out []catalog.Object
	for _, c := range conditions {
		if catalog.Text(c, "type") == name {
			out = append(out, c)
		}
	}
	return out
}

// stampConditions fills in the times that conditions lack: a condition that was there with the same status keeps its
// own.
func stampConditions(conditions, before []catalog.Object, now time.Time) {
	stamp := now.UTC().Format(time.RFC3339)
	for _, c := range conditions {
		if c["lastUpdateTime"] == nil {
			c["lastUpdateTime"] = stamp
		}
		if c["lastTransitionTime"] != nil {
			continue
		}
		c["lastTransitionTime"] = stamp
		for _, b := range before {
			if catalog.Text(b, "type") == catalog.Text(c, "type") &&
				catalog.Text(b, "status") == catalog.Text(c, "status") && b["lastTransitionTime"] != nil {
				c["lastTransitionTime"] = b["lastTransitionTime"]
				break
			}
		}
	}
}

func anyList(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}
