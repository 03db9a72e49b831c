package resource

import (
	"fmt"
	"strings"

	"github.com/google/uuid"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func resourceClaimKind() rule.Kind {
	return rule.Of[resourcev1.ResourceClaim](rule.Kind{
		Group: resourceV1, Kind: "ResourceClaim", Plural: "resourceclaims", Status: true, StatusOnly: true,
		ReturnsDeleted: true,
		Also: withOlder[resourcev1beta1.ResourceClaim](
			rule.OnDemand[resourcev1beta2.ResourceClaim](resourceV1beta2), defaultOlderClaim),
		Convert: betweenVersions(upgradeClaim, downgradeClaim), OlderError: olderError,
		Form: olderClaimForm(),
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(resourceClaimCells), Default: defaultResourceClaim,
			PrepareUpdate: prepareDeviceClaimUpdate,
			ValidateIn:    claimPrivileges, UnconditionalUpdate: true,
		},
	})
}

func resourceClaimCells(c *resourcev1.ResourceClaim, e catalog.Env) []any {
	var states []string
	if c.DeletionTimestamp != nil {
		states = append(states, "deleted")
	} else if c.Status.Allocation == nil {
		states = append(states, "pending")
	}
	if c.Status.Allocation != nil {
		states = append(states, "allocated")
		if len(c.Status.ReservedFor) > 0 {
			states = append(states, "reserved")
		}
	}
	return []any{c.Name, strings.Join(states, ","), rule.Ago(c.CreationTimestamp, e)}
}

// deviceID is a device of a pool, or a share of it if several claims can use it. Errors show it in JSON.
type deviceID struct{ Driver, Pool, Device, ShareID string }

func deviceIDOf(obj object.Object) deviceID {
	return deviceID{object.String(obj, "driver"), object.String(obj, "pool"), object.String(obj, "device"),
		object.String(obj, "shareID")}
}

func deviceState(val *rule.Validation, d object.Object, allocated map[deviceID]bool, path *field.Path) {
	val.Block("DeviceName", d, nil, path)
	shareID(val, d, path.Child("shareID"))
	if id := deviceIDOf(d); !allocated[id] {
		val.Invalid(path, id, "must be an allocated device in the claim")
	}
	conditions := rule.As[[]metav1.Condition](d["conditions"])
	if len(conditions) > resourcev1.AllocatedDeviceStatusMaxConditions {
		val.Add(field.TooMany(path.Child("conditions"), len(conditions), resourcev1.AllocatedDeviceStatusMaxConditions))
	}
	val.Errs = append(val.Errs, unversioned.ValidateConditions(conditions, path.Child("conditions"))...)
	if d["data"] != nil {
		jsonObject(val, d["data"], resourcev1.AllocatedDeviceStatusDataMaxLength, path.Child("data"))
	}
	network := object.Map(d, "networkData")
	if network == nil {
		return
	}
	path = path.Child("networkData")
	val.Block("NetworkData", network, nil, path)
	set(val, rule.Strings(network["ips"]), resourcev1.NetworkDeviceDataMaxIPs, path.Child("ips"), itself,
		func(ip string, at *field.Path) {
			val.Errs = append(val.Errs, validation.IsValidInterfaceAddress(at, ip)...)
		})
}

func shareID(val *rule.Validation, obj object.Object, path *field.Path) {
	id, ok := obj["shareID"].(string)
	if !ok {
		return
	}
	if err := uuid.Validate(id); err != nil {
		val.Invalid(path, id, fmt.Sprintf("error validating uid: %v", err))
	} else if len(id) != 36 || id != strings.ToLower(id) {
		val.Invalid(path, id,
			"uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters")
	}
}

// reserved lets a claim be in use only while it is allocated, and by no new consumer once it is being deleted.
func reserved(val *rule.Validation, v, old any, allocated bool, path *field.Path) {
	switch {
	case rule.IsEmpty(v):
	case !allocated:
		val.Forbidden(path, "may not be specified when `allocated` is not set")
	case object.Map(val.Obj, "metadata")["deletionTimestamp"] != nil:
		had := map[resourcev1.ResourceClaimConsumerReference]bool{}
		for _, r := range rule.As[[]resourcev1.ResourceClaimConsumerReference](old) {
			had[r] = true
		}
		for _, r := range rule.As[[]resourcev1.ResourceClaimConsumerReference](v) {
			if !had[r] {
				val.Forbidden(path,
					"new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set")
				return
			}
		}
	}
}

// allocation validates the allocated devices of a claim.
func allocation(val *rule.Validation, a object.Object, names requests, path *field.Path) {
	devices, at := object.Map(a, "devices"), path.Child("devices")
	list(val, rule.Objects(devices["results"]), resourcev1.AllocationResultsMaxSize, at.Child("results"),
		func(r object.Object, at *field.Path) {
			requestRef(val, object.String(r, "request"), names, at.Child("request"))
			val.Block("DeviceName", r, nil, at)
			bindingConditions(val, r, at)
			shareID(val, r, at.Child("shareID"))
		})
	list(val, rule.Objects(devices["config"]), 2*resourcev1.DeviceConfigMaxSize, at.Child("config"),
		func(c object.Object, at *field.Path) {
			val.Block("AllocationConfig", c, nil, at)
			requestRefs(val, c["requests"], names, at.Child("requests"))
			deviceConfig(val, c, fresh, at)
		})
	if s := object.Map(a, "nodeSelector"); s != nil {
		val.Block("NodeSelector", s, nil, path.Child("nodeSelector"))
	}
}

// resourceClaimFunctions are the functions that resource_claim.txt names.
func resourceClaimFunctions() rule.Functions {
	return rule.Functions{
		"claimedDevices":   claimedDevices,
		"deviceClaim":      deviceClaim,
		"deviceToleration": deviceToleration,
	}
}
