package check

import (
	"fmt"
	"strings"

	"github.com/google/uuid"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// deviceClaim judges what a claim asks for, also in a template.
func deviceClaim(j *judgement, p place) {
	claim, path := p.object(), p.path
	names := requestsOf(claim)
	set(j, objects(claim["requests"]), resourcev1.DeviceRequestsMaxSize, path.Child("requests"), nameOf,
		j.deviceRequest)
	list(j, objects(claim["constraints"]), resourcev1.DeviceConstraintsMaxSize, path.Child("constraints"),
		func(c object, at *field.Path) {
			j.requestRefs(c["requests"], names, at.Child("requests"))
			match, byMatch := c["matchAttribute"].(string)
			distinct, byDistinct := c["distinctAttribute"].(string)
			switch {
			case byMatch:
				j.domainName(match, at.Child("matchAttribute"))
			case byDistinct:
				j.domainName(distinct, at.Child("distinctAttribute"))
			default: // the sentence is Kubernetes'
				j.required(at,
					`exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set`)
			}
		})
	list(j, objects(claim["config"]), resourcev1.DeviceConfigMaxSize, path.Child("config"),
		func(c object, at *field.Path) {
			j.requestRefs(c["requests"], names, at.Child("requests"))
			j.deviceConfig(c, fresh, at)
		})
}

// requests are the names of a claim's requests with those of their alternatives.
type requests map[string]map[string]bool

func requestsOf(claim object) requests {
	names := requests{}
	for _, r := range objects(claim["requests"]) {
		alternatives := map[string]bool{}
		for _, sub := range objects(r["firstAvailable"]) {
			alternatives[text1(sub, "name")] = true
		}
		names[text1(r, "name")] = alternatives
	}
	return names
}

// has tells whether there is a request, or an alternative of one: "request/alternative".
func (r requests) has(ref string) bool {
	name, alternative, deeper := strings.Cut(ref, "/")
	alternatives, ok := r[name]
	return ok && (!deeper || alternatives[alternative])
}

func (j *judgement) deviceRequest(r object, path *field.Path) {
	name := text1(r, "name")
	j.invalids(path.Child("name"), name, validation.IsDNS1123Label(name))
	exactly, alternatives := inner(r, "exactly"), objects(r["firstAvailable"])
	switch {
	case exactly == nil && len(alternatives) == 0:
		j.required(path, "exactly one of `exactly` or `firstAvailable` is required")
	case exactly != nil && len(alternatives) > 0:
		j.invalid(path, nil, "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set")
	case exactly != nil:
		j.wantedDevices(exactly, path.Child("exactly"))
	default:
		set(j, alternatives, resourcev1.FirstAvailableDeviceRequestMaxSize, path.Child("firstAvailable"), nameOf,
			func(sub object, at *field.Path) {
				name := text1(sub, "name")
				j.invalids(at.Child("name"), name, validation.IsDNS1123Label(name))
				j.wantedDevices(sub, at)
			})
	}
}

// wantedDevices judges which devices of a class are asked for, and how many.
func (j *judgement) wantedDevices(r object, path *field.Path) {
	if class := text1(r, "deviceClassName"); class == "" {
		j.required(path.Child("deviceClassName"), "")
	} else {
		j.invalids(path.Child("deviceClassName"), class, validation.IsDNS1123Subdomain(class))
	}
	j.deviceSelectors(r["selectors"], fresh, path.Child("selectors"))
	n, _ := number(r, "count")
	switch mode := text1(r, "allocationMode"); {
	case mode == "All" && n != 0:
		j.invalid(path.Child("count"), n, "must not be specified when allocationMode is 'All'")
	case mode == "ExactCount" && n <= 0:
		j.invalid(path.Child("count"), n, "must be greater than zero")
	case mode != "All" && mode != "ExactCount":
		j.unsupported(path.Child("allocationMode"), mode, "All", "ExactCount")
	}
	for i, t := range objects(r["tolerations"]) {
		j.block("DeviceToleration", t, nil, path.Child("tolerations").Index(i))
	}
}

// requestRefs judges a list of names of requests.
func (j *judgement) requestRefs(v any, names requests, path *field.Path) {
	set(j, texts(v), resourcev1.DeviceRequestsMaxSize, path, itself,
		func(ref string, at *field.Path) { j.requestRef(ref, names, at) })
}

func (j *judgement) requestRef(ref string, names requests, path *field.Path) {
	if strings.Count(ref, "/") < 2 {
		for name := range strings.SplitSeq(ref, "/") {
			j.invalids(path, name, validation.IsDNS1123Label(name))
		}
		if names.has(ref) {
			return
		}
	}
	j.invalid(path, ref,
		"must be the name of a request in the claim or the name of a request and a subrequest separated by '/'")
}

// deviceID is a device of a pool, and the share of it if several claims may have one. Errors show it in JSON.
type deviceID struct{ Driver, Pool, Device, ShareID string }

func deviceIDOf(obj object) deviceID {
	return deviceID{text1(obj, "driver"), text1(obj, "pool"), text1(obj, "device"), text1(obj, "shareID")}
}

// claimedDevices judges the status of a claim: which devices it has, what state they are in, and who may use them.
func claimedDevices(j *judgement, p place) {
	status, path := p.object(), p.path
	old, _ := p.old.(object)
	set(j, objects(status["reservedFor"]), resourcev1.ResourceClaimReservedForMaxSize, path.Child("reservedFor"),
		func(c object) string { return text1(c, "uid") },
		func(c object, at *field.Path) { j.block("ConsumerReference", c, nil, at) })
	allocation, was := inner(status, "allocation"), inner(old, "allocation")
	allocated := map[deviceID]bool{}
	for _, r := range objects(inner(allocation, "devices")["results"]) {
		allocated[deviceIDOf(r)] = true
	}
	set(j, objects(status["devices"]), -1, path.Child("devices"), deviceIDOf,
		func(d object, at *field.Path) { j.deviceState(d, allocated, at) })
	j.reserved(status["reservedFor"], old["reservedFor"], allocation != nil, path.Child("reservedFor"))
	switch path = path.Child("allocation"); {
	case allocation == nil:
	case was == nil:
		j.allocation(allocation, requestsOf(inner(j.obj, "spec", "devices")), path)
	case !same(allocation, was):
		j.invalid(path, inGo[resourcev1.AllocationResult](allocation), "field is immutable")
	}
}

func (j *judgement) deviceState(d object, allocated map[deviceID]bool, path *field.Path) {
	j.block("DeviceName", d, nil, path)
	j.shareID(d, path.Child("shareID"))
	if id := deviceIDOf(d); !allocated[id] {
		j.invalid(path, id, "must be an allocated device in the claim")
	}
	conditions := as[[]metav1.Condition](d["conditions"])
	if len(conditions) > resourcev1.AllocatedDeviceStatusMaxConditions {
		j.add(field.TooMany(path.Child("conditions"), len(conditions), resourcev1.AllocatedDeviceStatusMaxConditions))
	}
	j.errs = append(j.errs, unversioned.ValidateConditions(conditions, path.Child("conditions"))...)
	if d["data"] != nil {
		j.jsonObject(d["data"], resourcev1.AllocatedDeviceStatusDataMaxLength, path.Child("data"))
	}
	network := inner(d, "networkData")
	if network == nil {
		return
	}
	path = path.Child("networkData")
	j.block("NetworkData", network, nil, path)
	set(j, texts(network["ips"]), resourcev1.NetworkDeviceDataMaxIPs, path.Child("ips"), itself,
		func(ip string, at *field.Path) {
			j.errs = append(j.errs, validation.IsValidInterfaceAddress(at, ip)...)
		})
}

func (j *judgement) shareID(obj object, path *field.Path) {
	id, ok := obj["shareID"].(string)
	if !ok {
		return
	}
	if err := uuid.Validate(id); err != nil {
		j.invalid(path, id, fmt.Sprintf("error validating uid: %v", err))
	} else if len(id) != 36 || id != strings.ToLower(id) {
		j.invalid(path, id,
			"uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters")
	}
}

// reserved lets a claim be in use only while it has devices, and by nobody new once it is being deleted.
func (j *judgement) reserved(v, old any, allocated bool, path *field.Path) {
	switch {
	case empty(v):
	case !allocated:
		j.forbidden(path, "may not be specified when `allocated` is not set")
	case inner(j.obj, "metadata")["deletionTimestamp"] != nil:
		had := map[resourcev1.ResourceClaimConsumerReference]bool{}
		for _, r := range as[[]resourcev1.ResourceClaimConsumerReference](old) {
			had[r] = true
		}
		for _, r := range as[[]resourcev1.ResourceClaimConsumerReference](v) {
			if !had[r] {
				j.forbidden(path,
					"new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set")
				return
			}
		}
	}
}

// allocation judges which devices a claim got.
func (j *judgement) allocation(a object, names requests, path *field.Path) {
	devices, at := inner(a, "devices"), path.Child("devices")
	list(j, objects(devices["results"]), resourcev1.AllocationResultsMaxSize, at.Child("results"),
		func(r object, at *field.Path) {
			j.requestRef(text1(r, "request"), names, at.Child("request"))
			j.block("DeviceName", r, nil, at)
			j.bindingConditions(r, at)
			j.shareID(r, at.Child("shareID"))
		})
	list(j, objects(devices["config"]), 2*resourcev1.DeviceConfigMaxSize, at.Child("config"),
		func(c object, at *field.Path) {
			j.block("AllocationConfig", c, nil, at)
			j.requestRefs(c["requests"], names, at.Child("requests"))
			j.deviceConfig(c, fresh, at)
		})
	if s := inner(a, "nodeSelector"); s != nil {
		j.block("NodeSelector", s, nil, path.Child("nodeSelector"))
	}
}
