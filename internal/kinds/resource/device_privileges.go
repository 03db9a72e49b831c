package resource

import (
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func prepareDevicesUpdate(obj, old object.Object, _ string, e catalog.Env) {
	dateTaints(obj, e)
	rule.CountChange(obj, old)
}

// dateTaints sets the time of taints without one. In Kubernetes it is a default, which reads the clock.
func dateTaints(obj object.Object, e catalog.Env) {
	for _, d := range object.Objects(object.Map(obj, "spec")["devices"]) {
		for _, taint := range object.Objects(d["taints"]) {
			rule.SetDefault(taint, "timeAdded", rule.Stamp(e.Now))
		}
	}
}

// prepareDeviceClaimUpdate keeps the half that the endpoint does not change, and drops statuses of devices that are no
// longer allocated to the claim.
func prepareDeviceClaimUpdate(obj, old object.Object, subresource string, _ catalog.Env) {
	if subresource != "status" {
		rule.Keep(obj, old, "status")
		return
	}
	given := obj["status"]
	rule.KeepAll(obj, old)
	obj["status"] = given
	lost := map[[4]string]bool{}
	for _, r := range object.Objects(object.Map(old, "status", "allocation", "devices")["results"]) {
		lost[deviceOf(r)] = true
	}
	for _, r := range object.Objects(object.Map(obj, "status", "allocation", "devices")["results"]) {
		delete(lost, deviceOf(r))
	}
	status := object.Map(obj, "status")
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

// deviceOf returns the identity of a device, or of a share of one.
func deviceOf(obj object.Object) [4]string {
	return [4]string{object.String(obj, "driver"), object.String(obj, "pool"), object.String(obj, "device"),
		object.String(obj, "shareID")}
}

// adminAccess allows admin access to devices, including devices of other claims, only in namespaces with the label for
// it.
func adminAccess(path *field.Path, labels func() (map[string]string, error)) field.ErrorList {
	switch l, err := labels(); {
	case err != nil:
		return field.ErrorList{
			field.InternalError(path, fmt.Errorf("could not retrieve namespace to verify admin access: %w", err)),
		}
	case l[resourcev1.DRAAdminNamespaceLabelKey] != "true":
		return field.ErrorList{
			field.Forbidden(path,
				fmt.Sprintf("admin access to devices requires the `%s: true` label on the containing namespace",
					resourcev1.DRAAdminNamespaceLabelKey)),
		}
	}
	return nil
}

// claimPrivileges checks the requests of a new claim, and a new allocation in the status.
func claimPrivileges(
	obj, old object.Object, subresource string, labels func() (map[string]string, error),
) field.ErrorList {
	if subresource == "" {
		return requestedPrivileges(object.Map(obj, "spec"), old, labels)
	}
	const results = "results"
	path := func(i int) *field.Path {
		return field.NewPath("status", "allocation", "devices", results).Index(i).Child("adminAccess")
	}
	administers := func(r object.Object) bool { return r["adminAccess"] == true }
	if slices.ContainsFunc(object.Objects(object.Map(old, "status", "allocation", "devices")[results]), administers) {
		return nil
	}
	if i := slices.IndexFunc(object.Objects(object.Map(obj, "status", "allocation", "devices")[results]),
		administers); i >= 0 {
		return adminAccess(path(i), labels)
	}
	return nil
}

func templatePrivileges(obj, old object.Object, _ string, labels func() (map[string]string, error)) field.ErrorList {
	return requestedPrivileges(object.Map(obj, "spec", "spec"), old, labels)
}

// requestedPrivileges checks a new spec; an existing one does not change. Errors have the path in a claim, also for
// templates.
func requestedPrivileges(spec, old object.Object, labels func() (map[string]string, error)) field.ErrorList {
	if old != nil {
		return nil
	}
	i := slices.IndexFunc(object.Objects(object.Map(spec, "devices")["requests"]),
		func(r object.Object) bool { return object.Map(r, "exactly")["adminAccess"] == true })
	if i < 0 {
		return nil
	}
	return adminAccess(field.NewPath("spec", "devices", "requests").Index(i).Child("adminAccess"), labels)
}

// defaultDeviceCounts sets the count to one in requests for an exact count without a number.
func defaultDeviceCounts(spec object.Object) {
	devices, _ := spec["devices"].(map[string]any)
	one := func(r object.Object) {
		if r["allocationMode"] == "ExactCount" {
			rule.SetDefault(r, "count", int64(1))
		}
	}
	for _, r := range object.Objects(devices["requests"]) {
		if exactly, ok := r["exactly"].(map[string]any); ok {
			one(exactly)
		}
		for _, sub := range object.Objects(r["firstAvailable"]) {
			one(sub)
		}
	}
}

func defaultResourceClaim(obj object.Object) { defaultDeviceCounts(object.Child(obj, "spec")) }

func defaultResourceClaimTemplate(obj object.Object) {
	defaultDeviceCounts(object.Child(object.Child(obj, "spec"), "spec"))
}
