package pod

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// AccessModes checks the access modes of a volume or claim.
func AccessModes(val *rule.Validation, p rule.Value) {
	known := []string{"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"}
	alone, others := false, false
	for _, mode := range rule.Strings(p.New) {
		switch {
		case !slices.Contains(known, mode):
			val.Unsupported(p.Path, mode, known...)
		case mode == "ReadWriteOncePod":
			alone = true
		default:
			others = true
		}
	}
	if alone && others {
		val.Forbidden(p.Path, "may not use ReadWriteOncePod with other access modes")
	}
}

func claimSize(val *rule.Validation, p rule.Value) {
	at := p.Path.Child("resources").Key("storage")
	v, ok := object.Map(p.Object(), "resources", "requests")["storage"]
	if !ok {
		val.Required(at, "")
	} else if q := rule.Quantity(v); q.Sign() <= 0 {
		val.Invalid(at, q.String(), "must be greater than zero")
	}
}

func dataSource(val *rule.Validation, p rule.Value) {
	group, kind := object.String(p.Object(), "apiGroup"), object.String(p.Object(), "kind")
	if group == "" && kind != "PersistentVolumeClaim" {
		val.Invalid(p.Path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
	}
	if group != "" && (val.Old == nil || !hadGroup(object.Map(val.Old, "spec"))) {
		val.Invalids(p.Path.Child("apiGroup"), group, validation.IsDNS1123Subdomain(group))
	}
}

// hadGroup reports whether the data source of a claim has a group: such sources were not always validated.
func hadGroup(spec object.Object) bool {
	return object.Map(spec, "dataSource")["apiGroup"] != nil || object.Map(spec, "dataSourceRef")["apiGroup"] != nil
}

// dataSources requires equal values in both fields for the data source.
func dataSources(val *rule.Validation, p rule.Value) {
	a, b := object.Map(p.Object(), "dataSource"), object.Map(p.Object(), "dataSourceRef")
	if a == nil || b == nil {
		return
	}
	// Kubernetes passes a path as the value, which is printed as an empty object.
	switch {
	case object.String(b, "namespace") != "":
		val.Invalid(p.Path, object.Object{}, "may not be specified when dataSourceRef.namespace is specified")
	case a["apiGroup"] != b["apiGroup"] || object.String(a, "kind") != object.String(b, "kind") ||
		object.String(a, "name") != object.String(b, "name"):
		val.Invalid(p.Path, object.Object{}, "must match dataSourceRef")
	}
}

// Keep copies the value under name from from to obj.
func Keep(obj, from object.Object, name string) {
	if v, ok := from[name]; ok {
		obj[name] = v
	} else {
		delete(obj, name)
	}
}

// claimFunctions are the functions that claim.txt names.
func claimFunctions() rule.Functions {
	return rule.Functions{
		"accessModes":  AccessModes,
		"claimSize":    claimSize,
		"dataSource":   dataSource,
		"dataSources":  dataSources,
		"templateMeta": TemplateMeta,
	}
}
