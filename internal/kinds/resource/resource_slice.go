package resource

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func resourceSliceKind() rule.Kind {
	return rule.Of[resourcev1.ResourceSlice](rule.Kind{
		Group: resourceV1, Kind: "ResourceSlice", Plural: "resourceslices", ClusterScoped: true, Generation: true,
		ReturnsDeleted: true,
		Also: withOlder[resourcev1beta1.ResourceSlice](
			rule.OnDemand[resourcev1beta2.ResourceSlice](resourceV1beta2), defaultOlderSlice),
		Convert: betweenVersions(upgradeSlice, downgradeSlice), OlderError: olderError,
		Form: olderSliceForm(),
		Strategy: &catalog.Strategy{Cells: rule.Printed(resourceSliceCells), PrepareCreate: dateTaints,
			PrepareUpdate: prepareDevicesUpdate, UnconditionalUpdate: true,
			FieldLabels:  rule.FieldLabels("spec.nodeName", "spec.driver"),
			UnknownField: "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: %s"},
		Warn: warnResourceSlice,
	})
}

func resourceSliceCells(s *resourcev1.ResourceSlice, e catalog.Env) []any {
	return []any{s.Name, rule.Deref(s.Spec.NodeName, ""), s.Spec.Driver, s.Spec.Pool.Name,
		rule.Ago(s.CreationTimestamp, e)}
}

func warnResourceSlice(w *rule.Warnings) {
	if driver := object.String(object.Map(w.Obj, "spec"), "driver"); driver != strings.ToLower(driver) {
		w.Addf(field.NewPath("spec", "driver"), "driver names should be lowercase; %q contains uppercase characters",
			driver)
	}
}

// resourceSlice validates the devices of a pool, and the counters that they share.
func resourceSlice(val *rule.Validation, p rule.Value) {
	spec, path := p.Object(), p.Path
	sliceNodes(val, spec, path)
	if spec["sharedCounters"] != nil && spec["devices"] != nil {
		val.Invalid(path, "", "only one of `sharedCounters` or `devices` is allowed")
	}
	devices, had := rule.Objects(spec["devices"]), map[string]object.Object{}
	for _, d := range rule.Objects(object.Map(val.Old, "spec")["devices"]) {
		if had[object.String(d, "name")] == nil {
			had[object.String(d, "name")] = d
		}
	}
	most := resourcev1.ResourceSliceMaxDevices
	for _, d := range devices {
		if !rule.IsEmpty(d["taints"]) || !rule.IsEmpty(d["consumesCounters"]) || hasLists(d) {
			most = resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures
		}
	}
	set(val, devices, most, path.Child("devices"), nameOf, func(d object.Object, at *field.Path) {
		device(val, d, had[object.String(d, "name")], object.True(spec, "perDeviceNodeSelection"), at)
	})
	if len(devices) > most {
		val.OnlyDeclared(func() {
			for i, d := range devices {
				device(val, d, had[object.String(d, "name")], object.True(spec, "perDeviceNodeSelection"),
					path.Child("devices").Index(i))
			}
		})
	}
	shared, at := rule.Objects(spec["sharedCounters"]), path.Child("sharedCounters")
	if list(val, shared, resourcev1.ResourceSliceMaxCounterSets, at,
		func(s object.Object, at *field.Path) { counters(val, s, "name", at) }) {
		unique[resourcev1.CounterSet](val, shared, at, nameOf)
	}
}

// sliceNodes requires exactly one way to select the nodes of the devices.
func sliceNodes(val *rule.Validation, spec object.Object, path *field.Path) {
	var fields []string
	if name, ok := spec["nodeName"].(string); ok && name == "" {
		val.Invalid(path.Child("nodeName"), name, "must be either unset or set to a non-empty string")
	} else if ok {
		fields = append(fields, "`nodeName`")
		val.Invalids(path.Child("nodeName"), name, validation.IsDNS1123Subdomain(name))
	}
	if s := object.Map(spec, "nodeSelector"); s != nil {
		fields = append(fields, "`nodeSelector`")
		val.Block("NodeSelector", s, nil, path.Child("nodeSelector"))
		if len(rule.Objects(s["nodeSelectorTerms"])) != 1 {
			val.Invalid(path.Child("nodeSelector", "nodeSelectorTerms"), s["nodeSelectorTerms"],
				"must have exactly one node selector term")
		}
	}
	for _, name := range []string{"allNodes", "perDeviceNodeSelection"} {
		switch spec[name] {
		case true:
			fields = append(fields, "`"+name+"`")
		case false:
			val.Invalid(path.Child(name), false, "must be either unset or set to true")
		}
	}
	oneWay(val, fields, "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required",
		", but multiple fields are set", path)
}

func oneWay(val *rule.Validation, fields []string, rule, several string, path *field.Path) {
	switch len(fields) {
	case 0:
		val.Required(path, rule)
	case 1:
	default:
		val.Invalid(path, "{"+strings.Join(fields, ", ")+"}", rule+several)
	}
}

// device validates one device. old is its former state, nil if it is new; byDevice is true if each device has nodes of
// its own.
func device(val *rule.Validation, d, old object.Object, byDevice bool, path *field.Path) {
	val.Invalids(path.Child("name"), object.String(d, "name"), validation.IsDNS1123Label(object.String(d, "name")))
	attributes, capacity := object.Map(d, "attributes"), object.Map(d, "capacity")
	if n := len(attributes) + len(capacity); n > resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice {
		val.Invalid(path, int64(n),
			fmt.Sprintf("the total number of attributes and capacities must not exceed %d",
				resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice))
	}
	if n := attributeValues(attributes); n > resourcev1.ResourceSliceMaxAttributeValuesPerDevice {
		val.Invalid(path, int64(n),
			fmt.Sprintf("the total number of attribute values must not exceed %d",
				resourcev1.ResourceSliceMaxAttributeValuesPerDevice))
	}
	qualifiedKeys(val, attributes, func(a object.Object, path *field.Path) { attribute(val, a, path) },
		path.Child("attributes"))
	if old != nil && rule.Equivalent(capacity, old["capacity"]) {
		capacity = nil // stored amounts stay valid
	}
	qualifiedKeys(val, capacity, func(c object.Object, at *field.Path) {
		switch policy := object.Map(c, "requestPolicy"); {
		case policy == nil:
		case object.True(d, "allowMultipleAllocations"):
			requestPolicy(val, rule.Quantity(c["value"]), policy, at.Child("requestPolicy"))
		default:
			val.Forbidden(at.Child("requestPolicy"), "allowMultipleAllocations must be true")
		}
	}, path.Child("capacity"))
	if old == nil || !rule.Equivalent(d["taints"], old["taints"]) {
		list(val, rule.Objects(d["taints"]), resourcev1.DeviceTaintsMaxLength, path.Child("taints"),
			func(t object.Object, at *field.Path) {
				val.Block("DeviceTaint", t, nil, at)
			})
	}
	consumed, at := rule.Objects(d["consumesCounters"]), path.Child("consumesCounters")
	if list(val, consumed, resourcev1.ResourceSliceMaxDeviceCounterConsumptionsPerDevice, at,
		func(c object.Object, at *field.Path) { counters(val, c, "counterSet", at) }) {
		unique[resourcev1.DeviceCounterConsumption](val, consumed, at,
			func(c object.Object) string { return object.String(c, "counterSet") })
	}
	switch {
	case byDevice:
		deviceNodes(val, d, path)
	case d["nodeName"] != nil || d["nodeSelector"] != nil || d["allNodes"] != nil:
		val.Invalid(path, nil,
			"`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec")
	}
	bindingConditions(val, d, path)
	nodeResources(val, object.Map(d, "nodeAllocatableResources"), object.Map(d, "capacity"),
		path.Child("nodeAllocatableResources"))
}

// deviceNodes requires exactly one way to select the nodes of a device.
func deviceNodes(val *rule.Validation, d object.Object, path *field.Path) {
	var fields []string
	if name, ok := d["nodeName"].(string); ok && name == "" {
		val.Invalid(path.Child("nodeName"), name, "must not be empty")
	} else if ok {
		fields = append(fields, "`nodeName`")
		val.Invalids(path.Child("nodeName"), name, validation.IsDNS1123Subdomain(name))
	}
	if s := object.Map(d, "nodeSelector"); s != nil {
		fields = append(fields, "`nodeSelector`")
		val.Block("NodeSelector", s, nil, path.Child("nodeSelector"))
	}
	switch d["allNodes"] {
	case true:
		fields = append(fields, "`allNodes`")
	case false:
		val.Invalid(path.Child("allNodes"), false, "must be either unset or set to true")
	}
	oneWay(val, fields,
		"exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec", "", path)
}

// lists are the attributes with several values.
var lists = []string{"bools", "ints", "strings", "versions"}

func hasLists(device object.Object) bool {
	for _, a := range object.Map(device, "attributes") {
		a, _ := a.(object.Object)
		for _, name := range lists {
			if a[name] != nil {
				return true
			}
		}
	}
	return false
}

// attributeValues counts values; an attribute without a list counts as one.
func attributeValues(attributes object.Object) int {
	total := 0
	for _, a := range attributes {
		a, _ := a.(object.Object)
		n := 0
		for _, name := range lists {
			several, _ := a[name].([]any)
			n += len(several)
		}
		total += max(n, 1)
	}
	return total
}

// qualifiedKeys validates a map with names as keys, with or without a domain.
func qualifiedKeys(val *rule.Validation, m object.Object, each func(object.Object, *field.Path), path *field.Path) {
	for _, key := range object.Keys(m) {
		maybeDomainName(val, key, path)
		value, _ := m[key].(object.Object)
		each(value, path.Key(shortened(key, resourcev1.DeviceMaxDomainLength+1+resourcev1.DeviceMaxIDLength)))
	}
}

// shortened cuts the middle of a string that is longer than most bytes.
func shortened(s string, most int) string {
	if len(s) <= most {
		return s
	}
	most -= len("...")
	return s[:(most+1)/2] + "..." + s[len(s)-most/2:]
}

// attribute validates a value of one of eight types.
func attribute(val *rule.Validation, a object.Object, path *field.Path) {
	values := 0
	for _, name := range []string{"bool", "int", "string", "version"} {
		if v, ok := a[name]; ok && v != nil {
			values++
			attributeValue(val, name, v, path.Child(name))
		}
	}
	for _, name := range lists {
		several, ok := a[name].([]any)
		if !ok {
			continue
		}
		values++
		if len(several) == 0 {
			val.Invalid(path.Child(name), several, "must not be empty if specified")
		}
		for i, v := range several {
			attributeValue(val, strings.TrimSuffix(name, "s"), v, path.Child(name).Index(i))
		}
	}
	switch values {
	case 0:
		val.Declared(field.Invalid(path, "", "must specify one of: `"+strings.Join(attributeMembers, "`, `")+"`"))
	case 1:
	default:
		set := slices.DeleteFunc(slices.Clone(attributeMembers), func(name string) bool { return a[name] == nil })
		val.Declared(field.Invalid(path, "{"+strings.Join(set, ", ")+"}",
			"must specify exactly one of: `"+strings.Join(attributeMembers, "`, `")+"`"))
	}
}

// attributeMembers are the fields of an attribute, of which one is set.
var attributeMembers = []string{"int", "bool", "string", "version", "ints", "bools", "strings", "versions"}

// semantic is a version, by semver.org's grammar of 2.0.0.
var semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
	`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)

func attributeValue(val *rule.Validation, kind string, v any, path *field.Path) {
	s, ok := v.(string)
	if !ok {
		return
	}
	if kind == "version" && !semantic.MatchString(s) {
		val.Invalid(path, s, "must be a string compatible with semver.org spec 2.0.0")
	}
	if len(s) > resourcev1.DeviceAttributeMaxValueLength {
		val.Add(field.TooLong(path, "", resourcev1.DeviceAttributeMaxValueLength))
	}
}

// counters validates a set of counters, or a device's consumption of one. name is the field with the name of the set.
func counters(val *rule.Validation, c object.Object, name string, path *field.Path) {
	if s := object.String(c, name); s == "" {
		val.Declared(field.Required(path.Child(name), ""))
	} else {
		declaredLabel(val, path.Child(name), s)
	}
	counters, path := object.Map(c, "counters"), path.Child("counters")
	switch n := len(counters); {
	case n == 0:
		val.Declared(field.Required(path, ""))
	case n > resourcev1.ResourceSliceMaxCountersPerCounterSet:
		val.Add(field.TooMany(path, n, resourcev1.ResourceSliceMaxCountersPerCounterSet))
	default:
		for _, key := range object.Keys(counters) {
			declaredLabel(val, path, key)
		}
	}
}

// declaredLabel validates a label of a declarative rule.
func declaredLabel(val *rule.Validation, path *field.Path, label string) {
	for _, wrong := range validation.IsDNS1123Label(label) {
		val.Declared(field.Invalid(path, label, wrong))
	}
}

// nodeResources validates the resources of a node that a device consumes.
func nodeResources(val *rule.Validation, resources, capacity object.Object, path *field.Path) {
	for _, name := range object.Keys(resources) {
		m, at := object.Map(resources, name), path.Key(name)
		if name != "cpu" && name != "memory" && !strings.HasPrefix(name, "hugepages-") {
			val.Invalid(at, name, "must be a node allocatable resource name")
		}
		mapping, overhead := object.Map(m, "mapping"), object.Map(m, "overhead")
		if mapping == nil && overhead == nil {
			val.Required(at, "at least one of mapping or overhead must be set")
		}
		if mapping != nil {
			nodeMapping(val, mapping, capacity, at.Child("mapping"))
		}
		if overhead != nil {
			nodeOverhead(val, overhead, at.Child("overhead"))
		}
	}
}

// nodeMapping validates the share of a node's resource for each device, or for each unit of its capacity.
func nodeMapping(val *rule.Validation, m, capacity object.Object, path *field.Path) {
	key, byKey := m["capacityKey"].(string)
	positive := func(name string) bool {
		v, ok := m[name]
		if q := rule.Quantity(v); ok && q.Sign() <= 0 {
			val.Invalid(path.Child(name), q.String(), "must be positive")
		}
		return ok
	}
	if byKey {
		if _, known := capacity[key]; key == "" {
			val.Invalid(path.Child("capacityKey"), "", "capacityKey must not be an empty string")
		} else if !known {
			val.Add(field.NotFound(path.Child("capacityKey"), key))
		}
		if !positive("capacityMultiplier") {
			val.Required(path.Child("capacityMultiplier"), "capacityMultiplier is required when capacityKey is set")
		}
	} else if m["capacityMultiplier"] != nil {
		val.Required(path.Child("capacityKey"), "capacityKey is required when capacityMultiplier is set")
	}
	byDevice := positive("deviceMultiplier")
	switch {
	case byKey && byDevice:
		val.Invalid(path, "{capacityKey, deviceMultiplier}",
			"must specify exactly one of: `capacityKey`, `deviceMultiplier`")
	case !byKey && !byDevice:
		val.Invalid(path, "", "must specify one of: `capacityKey`, `deviceMultiplier`")
	}
}

// nodeOverhead validates the additional resources for each pod and container that uses a device.
func nodeOverhead(val *rule.Validation, overhead object.Object, path *field.Path) {
	if overhead["perPod"] == nil && overhead["perContainer"] == nil {
		val.Invalid(path, "", "at least one of perPod or perContainer must be set")
	}
	for _, name := range []string{"perPod", "perContainer"} {
		if q := rule.Quantity(overhead[name]); q.Sign() < 0 {
			val.Invalid(path.Child(name), q.String(), "must be non-negative")
		}
	}
}

// resourceSliceFunctions are the functions that resource_slice.txt names.
func resourceSliceFunctions() rule.Functions {
	return rule.Functions{
		"poolName":      poolName,
		"resourceSlice": resourceSlice,
	}
}
