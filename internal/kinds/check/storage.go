package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// storageFunctions are about the kinds of storage.k8s.io and scheduling.k8s.io.
func storageFunctions() map[string]func(*judgement, place) {
	return map[string]func(*judgement, place){
		"parameters":       func(j *judgement, p place) { j.parameters(p) },
		"someParameters":   someParameters,
		"attributesUpdate": attributesUpdate,
		"topologies":       topologies,
		"driversOnce":      driversOnce,
		"driversStay":      driversStay,
		"nodeID":           nodeID,
		"topologyKeys":     topologyKeys,
		"podFixed":         podFixed,
		"driverUpdate":     driverUpdate,
		"attachRequired":   attachRequired,
		"tokenRequests":    tokenRequests,
		"lifecycleModes":   lifecycleModes,
		"tokenInSecrets":   tokenInSecrets,
		"priorityClass":    priorityClass,
		"priorityValue":    priorityValue,
	}
}

const (
	mostParameters    = 512
	mostParameterSize = 256 << 10 // bytes
)

func (j *judgement) parameters(p place) {
	all, size := pairs(p.value), 0
	if len(all) > mostParameters {
		j.add(field.TooLong(p.path, "", mostParameters))
		return
	}
	for _, key := range sorted(all) {
		if key == "" {
			j.invalid(p.path, key, "field can not be empty.")
		}
		size += len(key) + len(all[key])
	}
	if size > mostParameterSize {
		j.add(field.TooLong(p.path, "", mostParameterSize))
	}
}

func someParameters(j *judgement, p place) {
	j.parameters(p)
	if empty(p.value) {
		j.required(p.path, "must contain at least one key/value pair")
	}
}

func attributesUpdate(j *judgement, _ place) {
	if j.obj["driverName"] != j.old["driverName"] {
		j.forbidden(field.NewPath("driverName"), "updates to driverName are forbidden.")
	}
	if !same(j.obj["parameters"], j.old["parameters"]) {
		j.forbidden(field.NewPath("parameters"), "updates to parameters are forbidden.")
	}
}

// topologies judges where volumes of a class may be: each term names a label once, and no term is there twice.
func topologies(j *judgement, p place) {
	var terms []string
	for i, term := range objects(p.value) {
		path, seen := p.path.Index(i).Child("matchLabelExpressions"), map[string]string{}
		for k, e := range objects(term["matchLabelExpressions"]) {
			at, values, key := path.Index(k), texts(e["values"]), text1(e, "key")
			if len(values) == 0 {
				j.required(at.Child("values"), "")
			}
			for n, v := range values {
				if slices.Contains(values[:n], v) {
					j.duplicate(at.Child("values").Index(n), v)
				}
			}
			j.invalids(at.Child("key"), key, validation.IsQualifiedName(key))
			if _, ok := seen[key]; ok {
				j.duplicate(at.Child("key"), key)
			}
			slices.Sort(values)
			seen[key] = strings.Join(slices.Compact(values), "\x00")
		}
		form := fmt.Sprint(seen)
		if len(seen) == 0 {
			j.duplicate(path, "") // Kubernetes takes a term that says nothing for the repetition of one
		}
		for _, other := range terms {
			if other == form {
				j.duplicate(path, "")
			}
		}
		terms = append(terms, form)
	}
}

func driversOnce(j *judgement, p place) {
	seen := map[string]bool{}
	for i, d := range objects(p.value) {
		name := text1(d, "name")
		if seen[name] {
			j.duplicate(p.path.Index(i).Child("name"), name)
		}
		seen[name] = true
	}
}

// driversStay: what a node says of a driver it keeps saying, but for how many volumes it takes.
func driversStay(j *judgement, p place) {
	for _, was := range objects(p.old) {
		for _, now := range objects(p.value) {
			if text1(now, "name") != text1(was, "name") {
				continue
			}
			a, b := maps.Clone(now), maps.Clone(was)
			delete(a, "allocatable")
			delete(b, "allocatable")
			if !same(a, b) {
				j.invalid(p.path, a, "field is immutable")
			}
		}
	}
}

func nodeID(j *judgement, p place) {
	if id, _ := p.value.(string); len(id) > 256 {
		j.invalid(p.path, id, "must be 256 characters or less")
	}
}

// topologyKeys judges labels by which a driver says where it is. Errors are about the driver, as in Kubernetes.
func topologyKeys(j *judgement, p place) {
	seen := map[string]bool{}
	for _, key := range texts(p.value) {
		if key == "" {
			j.required(parentOf(p.path), "")
		}
		if seen[key] {
			j.duplicate(parentOf(p.path), key)
		}
		seen[key] = true
		j.invalids(parentOf(p.path), key, validation.IsQualifiedName(key))
	}
}

// parentOf returns the path of the object that has a field.
func parentOf(path *field.Path) *field.Path {
	s := path.String()
	return field.NewPath(s[:strings.LastIndexByte(s, '.')])
}

// podFixed judges what pods of a class need besides.
func podFixed(j *judgement, p place) {
	if p.value != nil {
		j.requirements(object{"limits": p.object()["podFixed"]}, p.path, j.containerResource)
	}
}

func attachRequired(j *judgement, p place) {
	if p.object()["attachRequired"] == nil {
		j.required(p.path.Child("attachedRequired"), "")
	}
}

func tokenRequests(j *judgement, p place) {
	seen := map[string]bool{}
	for i, r := range objects(p.value) {
		at, audience := p.path.Index(i), text1(r, "audience")
		if seen[audience] {
			j.duplicate(at.Child("audience"), audience)
			continue
		}
		seen[audience] = true
		life, ok := number(r, "expirationSeconds")
		if ok && life < 600 {
			j.invalid(at.Child("expirationSeconds"), life, "may not specify a duration less than 10 minutes")
		}
		if life > 1<<32 {
			j.invalid(at.Child("expirationSeconds"), life, "may not specify a duration larger than 2^32 seconds")
		}
	}
}

func lifecycleModes(j *judgement, p place) {
	for _, mode := range texts(p.value) {
		if mode != "Persistent" && mode != "Ephemeral" {
			j.unsupported(p.path, mode, "Persistent", "Ephemeral")
		}
	}
}

func tokenInSecrets(j *judgement, p place) {
	if v := p.object()["serviceAccountTokenInSecrets"]; v != nil && empty(p.object()["tokenRequests"]) {
		j.invalid(p.path.Child("serviceAccountTokenInSecrets"), v,
			"serviceAccountTokenInSecrets is set but no tokenRequests are specified")
	}
}

func driverUpdate(j *judgement, _ place) {
	spec, was, path := inner(j.obj, "spec"), inner(j.old, "spec"), field.NewPath("spec")
	if !same(spec["attachRequired"], was["attachRequired"]) {
		j.invalid(path.Child("attachedRequired"), spec["attachRequired"], "field is immutable")
	}
	if !same(spec["volumeLifecycleModes"], was["volumeLifecycleModes"]) {
		j.invalid(path.Child("volumeLifecycleModes"), spec["volumeLifecycleModes"], "field is immutable")
	}
}

// highestPriority is the highest that users may define; the system's own classes are above.
const highestPriority = 1_000_000_000

// SystemPriority returns the value of a system PriorityClass, false if there is no such class.
func SystemPriority(name string) (int64, bool) {
	switch name {
	case "system-node-critical":
		return 2*highestPriority + 1000, true
	case "system-cluster-critical":
		return 2 * highestPriority, true
	}
	return 0, false
}

func priorityClass(j *judgement, p place) {
	name := text1(inner(j.obj, "metadata"), "name")
	value, _ := number(j.obj, "value")
	if !strings.HasPrefix(name, "system-") {
		if value > highestPriority {
			j.forbidden(field.NewPath("value"),
				fmt.Sprintf("maximum allowed value of a user defined priority is %v", highestPriority))
		}
		return
	}
	why := ""
	switch want, ok := SystemPriority(name); {
	case !ok:
		why = fmt.Sprintf("%v is not a known system priority class", name)
	case value != want:
		why = fmt.Sprintf("value of %v PriorityClass must be %v", name, want)
	case truth(j.obj, "globalDefault"):
		why = fmt.Sprintf("globalDefault of %v PriorityClass must be %v", name, false)
	}
	if why != "" {
		j.forbidden(field.NewPath("metadata", "name"),
			"priority class names with 'system-' prefix are reserved for system use only. error: "+why)
	}
}

func priorityValue(j *judgement, _ place) {
	if !same(j.obj["value"], j.old["value"]) {
		j.forbidden(field.NewPath("value"), "may not be changed in an update.")
	}
}
