package resource

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// claimedDevices validates the status of a claim: its devices, their states, and its consumers.
func claimedDevices(val *rule.Validation, p rule.Value) {
	status, path := p.Object(), p.Path
	old, _ := p.Old.(object.Object)
	consumers, at := rule.Objects(status["reservedFor"]), path.Child("reservedFor")
	if list(val, consumers, resourcev1.ResourceClaimReservedForMaxSize, at,
		func(c object.Object, at *field.Path) { val.Block("ConsumerReference", c, nil, at) }) {
		unique[resourcev1.ResourceClaimConsumerReference](val, consumers, at,
			func(c object.Object) string { return object.String(c, "uid") })
	}
	now, was := object.Map(status, "allocation"), object.Map(old, "allocation")
	allocated := map[deviceID]bool{}
	for _, r := range rule.Objects(object.Map(now, "devices")["results"]) {
		allocated[deviceIDOf(r)] = true
	}
	set(val, rule.Objects(status["devices"]), -1, path.Child("devices"), deviceIDOf,
		func(d object.Object, at *field.Path) { deviceState(val, d, allocated, at) })
	reserved(val, status["reservedFor"], old["reservedFor"], now != nil, path.Child("reservedFor"))
	switch path = path.Child("allocation"); {
	case now == nil:
	case was == nil:
		allocation(val, now, requestsOf(object.Map(val.Obj, "spec", "devices")), path)
	case !rule.Equivalent(now, was):
		val.Invalid(path, nil, "field cannot be modified once set")
	}
}
