package check

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// resourceSlice judges the devices of a pool, and the counters that they share.
func resourceSlice(j *judgement, p place) {
	spec, path := p.object(), p.path
	j.sliceNodes(spec, path)
	if spec["sharedCounters"] != nil && spec["devices"] != nil {
		j.invalid(path, "", "only one of `sharedCounters` or `devices` is allowed")
	}
	devices, had := objects(spec["devices"]), map[string]object{}
	for _, d := range objects(inner(j.old, "spec")["devices"]) {
		if had[text1(d, "name")] == nil {
			had[text1(d, "name")] = d
		}
	}
	most := resourcev1.ResourceSliceMaxDevices
	for _, d := range devices {
		if !empty(d["taints"]) || !empty(d["consumesCounters"]) || hasLists(d) {
			most = resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures
		}
	}
	set(j, devices, most, path.Child("devices"), nameOf, func(d object, at *field.Path) {
		j.device(d, had[text1(d, "name")], truth(spec, "perDeviceNodeSelection"), at)
	})
	set(j, objects(spec["sharedCounters"]), resourcev1.ResourceSliceMaxCounterSets, path.Child("sharedCounters"),
		nameOf, func(s object, at *field.Path) {
			j.counters(s, "name", at)
		})
}

// sliceNodes wants one way to say which nodes can use the devices.
func (j *judgement) sliceNodes(spec object, path *field.Path) {
	var ways []string
	if name, ok := spec["nodeName"].(string); ok && name == "" {
		j.invalid(path.Child("nodeName"), name, "must be either unset or set to a non-empty string")
	} else if ok {
		ways = append(ways, "`nodeName`")
		j.invalids(path.Child("nodeName"), name, validation.IsDNS1123Subdomain(name))
	}
	if s := inner(spec, "nodeSelector"); s != nil {
		ways = append(ways, "`nodeSelector`")
		j.block("NodeSelector", s, nil, path.Child("nodeSelector"))
		if len(objects(s["nodeSelectorTerms"])) != 1 {
			j.invalid(path.Child("nodeSelector", "nodeSelectorTerms"), s["nodeSelectorTerms"],
				"must have exactly one node selector term")
		}
	}
	for _, name := range []string{"allNodes", "perDeviceNodeSelection"} {
		switch spec[name] {
		case true:
			ways = append(ways, "`"+name+"`")
		case false:
			j.invalid(path.Child(name), false, "must be either unset or set to true")
		}
	}
	j.oneWay(ways, "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required",
		", but multiple fields are set", path)
}

func (j *judgement) oneWay(ways []string, rule, several string, path *field.Path) {
	switch len(ways) {
	case 0:
		j.required(path, rule)
	case 1:
	default:
		j.invalid(path, "{"+strings.Join(ways, ", ")+"}", rule+several)
	}
}

// device judges one device. old is what it was before, nil if it is new; byDevice is true if each device has nodes of
// its own.
func (j *judgement) device(d, old object, byDevice bool, path *field.Path) {
	j.invalids(path.Child("name"), text1(d, "name"), validation.IsDNS1123Label(text1(d, "name")))
	attributes, capacity := inner(d, "attributes"), inner(d, "capacity")
	if n := len(attributes) + len(capacity); n > resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice {
		j.invalid(path, int64(n),
			fmt.Sprintf("the total number of attributes and capacities must not exceed %d",
				resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice))
	}
	if n := attributeValues(attributes); n > resourcev1.ResourceSliceMaxAttributeValuesPerDevice {
		j.invalid(path, int64(n),
			fmt.Sprintf("the total number of attribute values must not exceed %d",
				resourcev1.ResourceSliceMaxAttributeValuesPerDevice))
	}
	j.qualifiedKeys(attributes, j.attribute, path.Child("attributes"))
	j.qualifiedKeys(capacity, func(c object, at *field.Path) {
		switch policy := inner(c, "requestPolicy"); {
		case policy == nil:
		case truth(d, "allowMultipleAllocations"):
			j.requestPolicy(quantity(c["value"]), policy, at.Child("requestPolicy"))
		default:
			j.forbidden(at.Child("requestPolicy"), "allowMultipleAllocations must be true")
		}
	}, path.Child("capacity"))
	if old == nil || !same(d["taints"], old["taints"]) {
		list(j, objects(d["taints"]), resourcev1.DeviceTaintsMaxLength, path.Child("taints"),
			func(t object, at *field.Path) {
				j.block("DeviceTaint", t, nil, at)
			})
	}
	set(j, objects(d["consumesCounters"]), resourcev1.ResourceSliceMaxDeviceCounterConsumptionsPerDevice,
		path.Child("consumesCounters"),
		func(c object) string { return text1(c, "counterSet") },
		func(c object, at *field.Path) { j.counters(c, "counterSet", at) })
	switch {
	case byDevice:
		j.deviceNodes(d, path)
	case d["nodeName"] != nil || d["nodeSelector"] != nil || d["allNodes"] != nil:
		j.invalid(path, nil,
			"`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec")
	}
	j.bindingConditions(d, path)
	j.nodeMappings(inner(d, "nodeAllocatableResourceMappings"), capacity, path.Child("nodeAllocatableResourceMappings"))
}

// deviceNodes wants one way to say which nodes can use a device.
func (j *judgement) deviceNodes(d object, path *field.Path) {
	var ways []string
	if name, ok := d["nodeName"].(string); ok && name == "" {
		j.invalid(path.Child("nodeName"), name, "must not be empty")
	} else if ok {
		ways = append(ways, "`nodeName`")
		j.invalids(path.Child("nodeName"), name, validation.IsDNS1123Subdomain(name))
	}
	if s := inner(d, "nodeSelector"); s != nil {
		ways = append(ways, "`nodeSelector`")
		j.block("NodeSelector", s, nil, path.Child("nodeSelector"))
	}
	switch d["allNodes"] {
	case true:
		ways = append(ways, "`allNodes`")
	case false:
		j.invalid(path.Child("allNodes"), false, "must be either unset or set to true")
	}
	j.oneWay(ways,
		"exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec", "", path)
}

// lists are the attributes with several values.
var lists = []string{"bools", "ints", "strings", "versions"}

func hasLists(device object) bool {
	for _, a := range inner(device, "attributes") {
		a, _ := a.(object)
		for _, name := range lists {
			if a[name] != nil {
				return true
			}
		}
	}
	return false
}

// attributeValues counts values; an attribute counts as one unless it has several.
func attributeValues(attributes object) int {
	total := 0
	for _, a := range attributes {
		a, _ := a.(object)
		n := 0
		for _, name := range lists {
			several, _ := a[name].([]any)
			n += len(several)
		}
		total += max(n, 1)
	}
	return total
}

// qualifiedKeys judges a map whose keys are names with or without a domain.
func (j *judgement) qualifiedKeys(m object, each func(object, *field.Path), path *field.Path) {
	for _, key := range keys(m) {
		j.maybeDomainName(key, path)
		value, _ := m[key].(object)
		each(value, path.Key(shortened(key, resourcev1.DeviceMaxDomainLength+1+resourcev1.DeviceMaxIDLength)))
	}
}

// shortened leaves out the middle of a text that is longer than most bytes.
func shortened(s string, most int) string {
	if len(s) <= most {
		return s
	}
	most -= len("...")
	return s[:(most+1)/2] + "..." + s[len(s)-most/2:]
}

// maybeDomainName judges "identifier" or "domain/identifier". Kubernetes lets more than one slash pass, and so does
// this.
func (j *judgement) maybeDomainName(s string, path *field.Path) {
	parts := strings.Split(s, "/")
	switch len(parts) {
	case 1:
		j.identifier(s, path)
	case 2:
		if parts[0] == "" {
			j.invalid(path, "", "the domain must not be empty")
		} else {
			driverName(j, place{value: parts[0], path: path})
		}
		if parts[1] == "" {
			j.invalid(path, "", "the name must not be empty")
		} else {
			j.identifier(parts[1], path)
		}
	}
}

// domainName judges a name that must have a domain.
func (j *judgement) domainName(s string, path *field.Path) {
	j.maybeDomainName(s, path)
	if !strings.Contains(s, "/") {
		j.invalid(path, s, "a fully qualified name must be a domain and a name separated by a slash")
	}
}

func (j *judgement) identifier(s string, path *field.Path) {
	if len(s) > resourcev1.DeviceMaxIDLength {
		j.add(field.TooLong(path, "", resourcev1.DeviceMaxIDLength))
	}
	j.invalids(path, s, content.IsCIdentifier(s))
}

// attribute judges a value of one of eight types. An empty list is no value: the types with several are not for new
// attributes yet.
func (j *judgement) attribute(a object, path *field.Path) {
	values := 0
	for _, name := range []string{"bool", "int", "string", "version"} {
		if v, ok := a[name]; ok && v != nil {
			values++
			j.attributeValue(name, v, path.Child(name))
		}
	}
	for _, name := range lists {
		several, ok := a[name].([]any)
		if !ok {
			continue
		}
		values++
		for i, v := range several {
			j.attributeValue(strings.TrimSuffix(name, "s"), v, path.Child(name).Index(i))
		}
	}
	switch values {
	case 0:
		j.invalid(path, "", "exactly one value must be specified")
	case 1:
	default:
		j.invalid(path, inGo[resourcev1.DeviceAttribute](a), "exactly one value must be specified")
	}
}

// semantic is a version, by semver.org's grammar of 2.0.0.
var semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
	`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)

func (j *judgement) attributeValue(kind string, v any, path *field.Path) {
	s, ok := v.(string)
	if !ok {
		return
	}
	if kind == "version" && !semantic.MatchString(s) {
		j.invalid(path, s, "must be a string compatible with semver.org spec 2.0.0")
	}
	if len(s) > resourcev1.DeviceAttributeMaxValueLength {
		j.add(field.TooLong(path, "", resourcev1.DeviceAttributeMaxValueLength))
	}
}

// counters judges a set of counters, or how much a device takes of one. name is the field with the name of the set.
func (j *judgement) counters(c object, name string, path *field.Path) {
	if s := text1(c, name); s == "" {
		j.required(path.Child(name), "")
	} else {
		j.invalids(path.Child(name), s, validation.IsDNS1123Label(s))
	}
	counters, path := inner(c, "counters"), path.Child("counters")
	switch n := len(counters); {
	case n == 0:
		j.required(path, "")
	case n > resourcev1.ResourceSliceMaxCountersPerCounterSet:
		j.add(field.TooMany(path, n, resourcev1.ResourceSliceMaxCountersPerCounterSet))
	default:
		for _, key := range keys(counters) {
			j.invalids(path, key, validation.IsDNS1123Label(key))
		}
	}
}

// nodeMappings judges which resources of a node a device takes.
func (j *judgement) nodeMappings(mappings, capacity object, path *field.Path) {
	for _, name := range keys(mappings) {
		m, at := inner(mappings, name), path.Key(name)
		if !native(name) {
			j.invalid(at, name, "must be a node allocatable resource name")
		}
		key, byKey := m["capacityKey"].(string)
		multiplier, multiplied := m["allocationMultiplier"]
		if !byKey && !multiplied {
			j.invalid(at, "", "at least one of allocationMultiplier or capacityKey must be set")
		}
		if q := quantity(multiplier); multiplied && q.Sign() <= 0 {
			j.invalid(at.Child("allocationMultiplier"), q.String(), "must be positive")
		}
		switch _, known := capacity[key]; {
		case !byKey:
		case key == "":
			j.invalid(at.Child("capacityKey"), "", "capacityKey must not be an empty string")
		case !known:
			j.add(field.NotFound(at.Child("capacityKey"), key))
		}
	}
}

// requestPolicy judges which amounts of a capacity may be asked for.
func (j *judgement) requestPolicy(most resource.Quantity, policy object, path *field.Path) {
	values, _ := policy["validValues"].([]any)
	amounts := inner(policy, "validRange")
	usual, defaulted := policy["default"]
	switch {
	case len(values) > 0 && amounts != nil:
		j.forbidden(path,
			`exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time`)
	case len(values) > 0 && !defaulted:
		j.required(path.Child("default"), "required when validValues is defined")
	case len(values) > 0:
		j.validValues(quantity(usual), most, values, path.Child("validValues"))
	case amounts != nil && !defaulted:
		j.required(path.Child("default"), "required when validRange is defined")
	case amounts != nil:
		j.validRange(quantity(usual), most, amounts, path.Child("validRange"))
	}
}

// mostValidValues is how many amounts a policy may list; it is not among the published limits.
const mostValidValues = 10

func (j *judgement) validValues(usual, most resource.Quantity, values []any, path *field.Path) {
	amounts := make([]resource.Quantity, len(values))
	found := false
	for i, v := range values {
		amounts[i] = quantity(v)
		if i > 0 && amounts[i-1].Cmp(amounts[i]) > 0 {
			j.invalid(path.Index(i), amounts[i].String(), "values must be sorted in ascending order")
		}
	}
	set(j, amounts, mostValidValues, path,
		func(q resource.Quantity) string { return strconv.FormatInt(q.Value(), 10) },
		func(q resource.Quantity, at *field.Path) {
			if q.Cmp(most) > 0 {
				j.invalid(at, q.String(), "option is larger than capacity value: "+most.String())
			}
			found = found || q.Cmp(usual) == 0
		})
	if !found {
		j.invalid(path, usual.String(), "default value is not valid according to the requestPolicy")
	}
}

func (j *judgement) validRange(usual, most resource.Quantity, amounts object, path *field.Path) {
	if amounts["min"] == nil {
		j.required(path.Child("min"), "required when validRange is defined")
		return
	}
	low, high, step := quantity(amounts["min"]), quantity(amounts["max"]), quantity(amounts["step"])
	refuse := func(wrong bool, name string, q resource.Quantity, detail string, than resource.Quantity) {
		if wrong {
			j.invalid(path.Child(name), q.String(), detail+than.String())
		}
	}
	refuse(low.Cmp(most) > 0, "min", low, "min is larger than capacity value: ", most)
	refuse(usual.Cmp(low) < 0, "min", usual, "default is less than min: ", low)
	if amounts["max"] != nil {
		refuse(low.Cmp(high) > 0, "max", low, "min is larger than max: ", high)
		refuse(high.Cmp(most) > 0, "max", high, "max is larger than capacity value: ", most)
		refuse(usual.Cmp(high) > 0, "max", usual, "default is more than max: ", high)
	}
	if amounts["step"] == nil {
		return
	}
	next := low.DeepCopy()
	next.Add(step)
	if next.Cmp(most) > 0 {
		j.invalid(path.Child("step"), step.String(),
			fmt.Sprintf("one step %s is larger than capacity value: %s", &next, &most))
	}
	onStep := func(q resource.Quantity) {
		if n := step.Value(); n == 0 || (q.Value()-low.Value())%n != 0 {
			j.invalid(path.Child("step"), q.String(),
				fmt.Sprintf("value is not a multiple of a given step (%s) from (%s)", &step, &low))
		}
	}
	onStep(usual)
	if amounts["max"] != nil {
		onStep(high)
	}
}
