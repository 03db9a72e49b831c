package storage

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

const (
	mostParameters    = 512
	mostParameterSize = 256 << 10 // bytes
)

func parameters(val *rule.Validation, p rule.Value) {
	all, size := rule.StringMap(p.New), 0
	if len(all) > mostParameters {
		val.Add(field.TooLong(p.Path, "", mostParameters))
		return
	}
	for _, key := range pod.SortedNames(all) {
		if key == "" {
			val.Invalid(p.Path, key, "field can not be empty.")
		}
		size += len(key) + len(all[key])
	}
	if size > mostParameterSize {
		val.Add(field.TooLong(p.Path, "", mostParameterSize))
	}
}

func someParameters(val *rule.Validation, p rule.Value) {
	parameters(val, p)
	if rule.IsEmpty(p.New) {
		val.Required(p.Path, "must contain at least one key/value pair")
	}
}

func attributesUpdate(val *rule.Validation, _ rule.Value) {
	if val.Obj["driverName"] != val.Old["driverName"] {
		val.Forbidden(field.NewPath("driverName"), "updates to driverName are forbidden.")
	}
	if !rule.Equivalent(val.Obj["parameters"], val.Old["parameters"]) {
		val.Forbidden(field.NewPath("parameters"), "updates to parameters are forbidden.")
	}
}

// topologies validates the allowed topologies of a class: unique labels in each term, and unique terms.
func topologies(val *rule.Validation, p rule.Value) {
	all := rule.Objects(p.New)
	// Kubernetes also compares each term with as many empty ones.
	terms := map[string]int{fmt.Sprintf("%q", map[string]string{}): len(all)}
	for i, term := range all {
		path, seen := p.Path.Index(i).Child("matchLabelExpressions"), map[string]string{}
		for k, e := range rule.Objects(term["matchLabelExpressions"]) {
			at, values, key := path.Index(k), rule.Strings(e["values"]), object.String(e, "key")
			if len(values) == 0 {
				val.Required(at.Child("values"), "")
			}
			before := sets.Set[string]{}
			for n, v := range values {
				if before.Has(v) {
					val.Duplicate(at.Child("values").Index(n), v)
				}
				before.Insert(v)
			}
			val.Invalids(at.Child("key"), key, validation.IsQualifiedName(key))
			if _, ok := seen[key]; ok {
				val.Duplicate(at.Child("key"), key)
			}
			slices.Sort(values)
			seen[key] = strings.Join(slices.Compact(values), "\x00")
		}
		form := fmt.Sprintf("%q", seen)
		val.Repeat(field.Duplicate(path, ""), terms[form])
		terms[form]++
	}
}

func driversOnce(val *rule.Validation, p rule.Value) {
	seen := map[string]bool{}
	for i, d := range rule.Objects(p.New) {
		name := object.String(d, "name")
		if seen[name] {
			val.Duplicate(p.Path.Index(i).Child("name"), name)
		}
		seen[name] = true
	}
}

// driversStay checks that a node keeps its values for a driver, except the number of volumes.
func driversStay(val *rule.Validation, p rule.Value) {
	drivers := map[string][]object.Object{} // by name, with one element in a valid object
	for _, now := range rule.Objects(p.New) {
		name := object.String(now, "name")
		drivers[name] = append(drivers[name], withoutAllocatable(now))
	}
	changed := map[string][]any{} // by the old driver
	for _, old := range rule.Objects(p.Old) {
		was := withoutAllocatable(old)
		key := fmt.Sprintf("%q", was)
		if _, ok := changed[key]; !ok {
			changed[key] = nil
			for _, now := range drivers[object.String(was, "name")] {
				if !rule.Equivalent(now, was) {
					changed[key] = append(changed[key], now)
				}
			}
		}
		for _, now := range changed[key] {
			if val.Full() {
				return
			}
			val.Invalid(p.Path, now, "field is immutable")
		}
	}
}

func withoutAllocatable(driver object.Object) object.Object {
	out := maps.Clone(driver)
	delete(out, "allocatable")
	return out
}

func nodeID(val *rule.Validation, p rule.Value) {
	if id, _ := p.New.(string); len(id) > 256 {
		val.Invalid(p.Path, id, "must be 256 characters or less")
	}
}

// topologyKeys validates the topology labels of a driver. Errors are about the driver, as in Kubernetes.
func topologyKeys(val *rule.Validation, p rule.Value) {
	seen := map[string]bool{}
	for _, key := range rule.Strings(p.New) {
		if key == "" {
			val.Required(parentOf(p.Path), "")
		}
		if seen[key] {
			val.Duplicate(parentOf(p.Path), key)
		}
		seen[key] = true
		val.Invalids(parentOf(p.Path), key, validation.IsQualifiedName(key))
	}
}

// parentOf returns the path of the object that has a field.
func parentOf(path *field.Path) *field.Path {
	s := path.String()
	return field.NewPath(s[:strings.LastIndexByte(s, '.')])
}

func attachRequired(val *rule.Validation, p rule.Value) {
	if p.Object()["attachRequired"] == nil {
		val.Required(p.Path.Child("attachedRequired"), "")
	}
}

func tokenRequests(val *rule.Validation, p rule.Value) {
	seen := map[string]bool{}
	for i, r := range rule.Objects(p.New) {
		at, audience := p.Path.Index(i), object.String(r, "audience")
		if seen[audience] {
			val.Duplicate(at.Child("audience"), audience)
			continue
		}
		seen[audience] = true
		life, ok := object.Int(r, "expirationSeconds")
		if ok && life < 600 {
			val.Invalid(at.Child("expirationSeconds"), life, "may not specify a duration less than 10 minutes")
		}
		if life > 1<<32 {
			val.Invalid(at.Child("expirationSeconds"), life, "may not specify a duration larger than 2^32 seconds")
		}
	}
}

func lifecycleModes(val *rule.Validation, p rule.Value) {
	for _, mode := range rule.Strings(p.New) {
		if mode != "Persistent" && mode != "Ephemeral" {
			val.Unsupported(p.Path, mode, "Persistent", "Ephemeral")
		}
	}
}

func tokenInSecrets(val *rule.Validation, p rule.Value) {
	if v := p.Object()["serviceAccountTokenInSecrets"]; v != nil && rule.IsEmpty(p.Object()["tokenRequests"]) {
		val.Invalid(p.Path.Child("serviceAccountTokenInSecrets"), v,
			"serviceAccountTokenInSecrets is set but no tokenRequests are specified")
	}
}

func driverUpdate(val *rule.Validation, _ rule.Value) {
	spec, was, path := object.Map(val.Obj, "spec"), object.Map(val.Old, "spec"), field.NewPath("spec")
	if !rule.Equivalent(spec["attachRequired"], was["attachRequired"]) {
		val.Invalid(path.Child("attachedRequired"), spec["attachRequired"], "field is immutable")
	}
	if !rule.Equivalent(spec["volumeLifecycleModes"], was["volumeLifecycleModes"]) {
		val.Invalid(path.Child("volumeLifecycleModes"), spec["volumeLifecycleModes"], "field is immutable")
	}
}

// lowered validates a name in lower case, and shows it so.
func lowered(val *rule.Validation, p rule.Value) {
	if s, _ := p.New.(string); s != "" {
		s = strings.ToLower(s)
		val.Invalids(p.Path, s, validation.IsQualifiedName(s))
	}
}
