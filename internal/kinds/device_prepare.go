package kinds

import (
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// prepareDevicesCreate drops what Kubernetes has behind feature gates, and says since when devices have taints.
func prepareDevicesCreate(obj catalog.Object, e catalog.Env) {
	dateTaints(obj, e)
	dropGatedOfDevices(obj, nil)
}

func prepareDevicesUpdate(obj, old catalog.Object, _ string, e catalog.Env) {
	dateTaints(obj, e)
	countChange(obj, old)
	dropGatedOfDevices(obj, old)
}

// dateTaints gives the time to taints that have none. In Kubernetes it is a default, for which the clock must be read.
func dateTaints(obj catalog.Object, e catalog.Env) {
	for _, d := range catalog.Objects(catalog.At(obj, "spec")["devices"]) {
		for _, taint := range catalog.Objects(d["taints"]) {
			orElse(taint, "timeAdded", stamp(e.Now))
		}
	}
}

// dropGatedOfDevices drops attributes with several values and mappings to resources of nodes, unless old has some.
func dropGatedOfDevices(obj, old catalog.Object) {
	devices := catalog.Objects(catalog.At(obj, "spec")["devices"])
	had := catalog.Objects(catalog.At(old, "spec")["devices"])
	if !slices.ContainsFunc(had,
		func(d catalog.Object) bool { return len(catalog.At(d, "nodeAllocatableResourceMappings")) > 0 }) {
		for _, d := range devices {
			delete(d, "nodeAllocatableResourceMappings")
		}
	}
	several := []string{"bools", "ints", "strings", "versions"}
	if slices.ContainsFunc(had, func(d catalog.Object) bool {
		for name := range catalog.At(d, "attributes") {
			a := catalog.At(d, "attributes", name)
			if slices.ContainsFunc(several, func(list string) bool { return a[list] != nil }) {
				return true
			}
		}
		return false
	}) {
		return
	}
	for _, d := range devices {
		for name := range catalog.At(d, "attributes") {
			for _, list := range several {
				delete(catalog.At(d, "attributes", name), list)
			}
		}
	}
}

// prepareDeviceClaimUpdate keeps the other half; what a status says about devices that the claim had and has no longer
// goes.
func prepareDeviceClaimUpdate(obj, old catalog.Object, subresource string, _ catalog.Env) {
	if subresource != "status" {
		keep(obj, old, "status")
		return
	}
	given := obj["status"]
	keepAll(obj, old)
	obj["status"] = given
	lost := map[[4]string]bool{}
	for _, r := range catalog.Objects(catalog.At(old, "status", "allocation", "devices")["results"]) {
		lost[deviceOf(r)] = true
	}
	for _, r := range catalog.Objects(catalog.At(obj, "status", "allocation", "devices")["results"]) {
		delete(lost, deviceOf(r))
	}
	status := catalog.At(obj, "status")
	list, _ := status["devices"].([]any)
	if list = slices.DeleteFunc(list, func(v any) bool {
		d, _ := v.(map[string]any)
		return lost[deviceOf(d)]
	}); len(list) > 0 {
		status["devices"] = list
	} else {
		delete(status, "devices")
	}
}

// deviceOf is what tells a device, or a share of one, from others.
func deviceOf(obj catalog.Object) [4]string {
	return [4]string{catalog.Text(obj, "driver"), catalog.Text(obj, "pool"), catalog.Text(obj, "device"),
		catalog.Text(obj, "shareID")}
}

// adminAccess lets devices be used by somebody beside their owner only in namespaces that say so.
func adminAccess(path *field.Path, labels func() (map[string]string, error)) errorList {
	switch l, err := labels(); {
	case err != nil:
		return errorList{
			field.InternalError(path, fmt.Errorf("could not retrieve namespace to verify admin access: %w", err)),
		}
	case l[resourcev1.DRAAdminNamespaceLabelKey] != "true":
		return errorList{
			field.Forbidden(path,
				fmt.Sprintf("admin access to devices requires the `%s: true` label on the containing namespace",
					resourcev1.DRAAdminNamespaceLabelKey)),
		}
	}
	return nil
}

// claimPrivileges looks at what a new claim asks for, and at what its status gives it for the first time.
func claimPrivileges(obj, old catalog.Object, subresource string, labels func() (map[string]string, error)) errorList {
	if subresource == "" {
		return requestedPrivileges(catalog.At(obj, "spec"), old, labels)
	}
	const results = "results"
	path := func(i int) *field.Path {
		return field.NewPath("status", "allocation", "devices", results).Index(i).Child("adminAccess")
	}
	administers := func(r catalog.Object) bool { return r["adminAccess"] == true }
	if slices.ContainsFunc(catalog.Objects(catalog.At(old, "status", "allocation", "devices")[results]), administers) {
		return nil
	}
	if i := slices.IndexFunc(catalog.Objects(catalog.At(obj, "status", "allocation", "devices")[results]),
		administers); i >= 0 {
		return adminAccess(path(i), labels)
	}
	return nil
}

func templatePrivileges(obj, old catalog.Object, _ string, labels func() (map[string]string, error)) errorList {
	return requestedPrivileges(catalog.At(obj, "spec", "spec"), old, labels)
}

// requestedPrivileges looks at a new spec; one that is there does not change. Errors have the path in a claim, also
// for templates.
func requestedPrivileges(spec, old catalog.Object, labels func() (map[string]string, error)) errorList {
	if old != nil {
		return nil
	}
	i := slices.IndexFunc(catalog.Objects(catalog.At(spec, "devices")["requests"]),
		func(r catalog.Object) bool { return catalog.At(r, "exactly")["adminAccess"] == true })
	if i < 0 {
		return nil
	}
	return adminAccess(field.NewPath("spec", "devices", "requests").Index(i).Child("adminAccess"), labels)
}
