package resource

import (
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// deviceClaim validates the requests of a claim, also in a template.
func deviceClaim(val *rule.Validation, p rule.Value) {
	claim, path := p.Object(), p.Path
	names := requestsOf(claim)
	wanted, at := rule.Objects(claim["requests"]), path.Child("requests")
	if list(val, wanted, resourcev1.DeviceRequestsMaxSize, at,
		func(r object.Object, path *field.Path) { deviceRequest(val, r, path) }) {
		unique[resourcev1.DeviceRequest](val, wanted, at, nameOf)
	}
	list(val, rule.Objects(claim["constraints"]), resourcev1.DeviceConstraintsMaxSize, path.Child("constraints"),
		func(c object.Object, at *field.Path) {
			requestRefs(val, c["requests"], names, at.Child("requests"))
			match, byMatch := c["matchAttribute"].(string)
			distinct, byDistinct := c["distinctAttribute"].(string)
			switch {
			case byMatch:
				domainName(val, match, at.Child("matchAttribute"))
			case byDistinct:
				domainName(val, distinct, at.Child("distinctAttribute"))
			default: // Kubernetes' sentence
				val.Required(at,
					`exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set`)
			}
		})
	list(val, rule.Objects(claim["config"]), resourcev1.DeviceConfigMaxSize, path.Child("config"),
		func(c object.Object, at *field.Path) {
			requestRefs(val, c["requests"], names, at.Child("requests"))
			deviceConfig(val, c, fresh, at)
		})
}

// requests are the names of a claim's requests with the names of their alternatives.
type requests map[string]map[string]bool

func requestsOf(claim object.Object) requests {
	names := requests{}
	for _, r := range rule.Objects(claim["requests"]) {
		alternatives := map[string]bool{}
		for _, sub := range rule.Objects(r["firstAvailable"]) {
			alternatives[object.String(sub, "name")] = true
		}
		names[object.String(r, "name")] = alternatives
	}
	return names
}

// has reports whether there is a request, or an alternative of one: "request/alternative".
func (r requests) has(ref string) bool {
	name, alternative, deeper := strings.Cut(ref, "/")
	alternatives, ok := r[name]
	return ok && (!deeper || alternatives[alternative])
}

func deviceRequest(val *rule.Validation, r object.Object, path *field.Path) {
	name := object.String(r, "name")
	val.Invalids(path.Child("name"), name, validation.IsDNS1123Label(name))
	exactly, alternatives := object.Map(r, "exactly"), rule.Objects(r["firstAvailable"])
	switch {
	case exactly == nil && len(alternatives) == 0:
		val.Required(path, "exactly one of `exactly` or `firstAvailable` is required")
	case exactly != nil && len(alternatives) > 0:
		val.Invalid(path, nil, "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set")
		val.OnlyDeclared(func() {
			wantedDevices(val, exactly, path.Child("exactly"), false)
			alternativeDevices(val, alternatives, path.Child("firstAvailable"))
		})
	case exactly != nil:
		wantedDevices(val, exactly, path.Child("exactly"), false)
	default:
		alternativeDevices(val, alternatives, path.Child("firstAvailable"))
	}
}

// alternativeDevices validates the alternatives of a request.
func alternativeDevices(val *rule.Validation, alternatives []object.Object, path *field.Path) {
	each := func(sub object.Object, at *field.Path) {
		name := object.String(sub, "name")
		val.Invalids(at.Child("name"), name, validation.IsDNS1123Label(name))
		wantedDevices(val, sub, at, true)
	}
	if list(val, alternatives, resourcev1.FirstAvailableDeviceRequestMaxSize, path, each) {
		unique[resourcev1.DeviceSubRequest](val, alternatives, path, nameOf)
	}
}

// wantedDevices validates the class and number of the requested devices. The rules about the class are declarative if
// declared is true.
func wantedDevices(val *rule.Validation, r object.Object, path *field.Path, declared bool) {
	add := val.Add
	if declared {
		add = val.Declared
	}
	if class := object.String(r, "deviceClassName"); class == "" {
		add(field.Required(path.Child("deviceClassName"), ""))
	} else {
		for _, wrong := range validation.IsDNS1123Subdomain(class) {
			add(field.Invalid(path.Child("deviceClassName"), class, wrong))
		}
	}
	deviceSelectors(val, r["selectors"], fresh, path.Child("selectors"))
	n, _ := object.Int(r, "count")
	switch mode := object.String(r, "allocationMode"); {
	case mode == "All" && n != 0:
		val.Invalid(path.Child("count"), n, "must not be specified when allocationMode is 'All'")
	case mode == "ExactCount" && n <= 0:
		val.Invalid(path.Child("count"), n, "must be greater than zero")
	case mode != "All" && mode != "ExactCount":
		val.Declared(field.NotSupported(path.Child("allocationMode"), mode, []string{"All", "ExactCount"}))
	}
	for i, t := range rule.Objects(r["tolerations"]) {
		before := len(val.Errs)
		val.Block("DeviceToleration", t, nil, path.Child("tolerations").Index(i))
		for _, e := range val.Errs[before:] {
			if !strings.HasSuffix(e.Field, ".value") {
				e.MarkBeta() // the rules about the other fields are declarative
			}
		}
	}
}

// requestRefs validates a list of names of requests.
func requestRefs(val *rule.Validation, v any, names requests, path *field.Path) {
	set(val, rule.Strings(v), resourcev1.DeviceRequestsMaxSize, path, itself,
		func(ref string, at *field.Path) { requestRef(val, ref, names, at) })
}

func requestRef(val *rule.Validation, ref string, names requests, path *field.Path) {
	if strings.Count(ref, "/") < 2 {
		for name := range strings.SplitSeq(ref, "/") {
			val.Invalids(path, name, validation.IsDNS1123Label(name))
		}
		if names.has(ref) {
			return
		}
	}
	val.Invalid(path, ref,
		"must be the name of a request in the claim or the name of a request and a subrequest separated by '/'")
}
