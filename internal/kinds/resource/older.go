package resource

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// older is the version in which Kubernetes 1.32 and 1.33 stored the kinds of this group.
const older = "v1beta1"

// olderForm decodes objects that an older kube-apiserver has stored in v1beta1, which differs from v1 in the location
// of some fields. upgrade moves them, in place, within the spec. Writes use v1.
func olderForm(upgrade func(spec object.Object)) *catalog.Form {
	name := []byte(`"resource.k8s.io/` + older + `"`)
	return &catalog.Form{
		Encode: func(doc []byte) ([]byte, error) { return doc, nil },
		Decode: func(raw []byte) ([]byte, error) {
			// Here and in kube-apiserver only apiVersion and kind precede metadata.
			if head, _, ok := bytes.Cut(raw, []byte(`"metadata"`)); !ok || !bytes.Contains(head, name) {
				return raw, nil
			}
			v, err := codec.DecodeJSON(raw)
			if err != nil {
				return nil, fmt.Errorf("decode resource.k8s.io/%s: %w", older, err)
			}
			obj, _ := v.(object.Object)
			obj["apiVersion"] = "resource.k8s.io/v1"
			if spec := object.Map(obj, "spec"); spec != nil {
				upgrade(spec)
			}
			return json.Marshal(obj)
		},
	}
}

func olderClaimForm() *catalog.Form { return olderForm(upgradeClaim) }

func olderTemplateForm() *catalog.Form { return olderForm(upgradeTemplate) }

func olderSliceForm() *catalog.Form { return olderForm(upgradeSlice) }

func olderClassForm() *catalog.Form { return olderForm(func(object.Object) {}) }

// withOlder returns the versions of a kind that are served on demand: v1beta2 (newer), with the fields of v1, and
// v1beta1 of Go type T. defaults sets the defaults of v1beta1; nil means that v1beta1 has the fields and
// defaults of v1.
func withOlder[T any](newer []*rule.Version, defaults func(object.Object)) []*rule.Version {
	v := rule.OnDemand[T](resourceV1beta1)[0]
	v.OtherFields, v.Default = defaults != nil, defaults
	return append(newer, v)
}

// betweenVersions makes the conversion of a kind: upgrade moves fields of the spec to their place in v1, and downgrade
// to their place in v1beta1 (pkg/apis/resource/v1beta1/conversion.go of Kubernetes).
func betweenVersions(upgrade, downgrade func(object.Object)) func(from, to *catalog.Version, obj object.Object) error {
	return func(from, to *catalog.Version, obj object.Object) error {
		spec := object.Map(obj, "spec")
		switch {
		case spec == nil || from.Name == to.Name:
		case from.Name == older:
			upgrade(spec)
		case to.Name == older:
			downgrade(spec)
		}
		return nil
	}
}

// exactFields are the fields of a request for one kind of device, which v1 has below exactly.
var exactFields = []string{"deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations",
	"capacity", "derivedAttributes"}

func upgradeClaim(spec object.Object) {
	for _, request := range object.Objects(object.Map(spec, "devices")["requests"]) {
		exactly := object.Object{}
		for _, name := range exactFields {
			if v, ok := request[name]; ok && v != nil && v != "" {
				exactly[name] = v
			}
			delete(request, name)
		}
		if len(exactly) == 0 {
			continue
		}
		if exactly["deviceClassName"] == nil {
			exactly["deviceClassName"] = "" // always written
		}
		request["exactly"] = exactly
	}
}

func downgradeClaim(spec object.Object) {
	for _, request := range object.Objects(object.Map(spec, "devices")["requests"]) {
		exactly := object.Map(request, "exactly")
		delete(request, "exactly")
		maps.Copy(request, exactly)
		rule.SetDefault(request, "deviceClassName", "") // always written
	}
}

// defaultOlderRequests sets the defaults of the requests of a claim in v1beta1. A request without a class is for one of
// several alternatives, and has no mode of its own.
func defaultOlderRequests(spec object.Object) {
	for _, request := range object.Objects(object.Map(spec, "devices")["requests"]) {
		if object.String(request, "deviceClassName") != "" {
			defaultOlderCount(request)
		}
		defaultTolerations(request)
		for _, alternative := range object.Objects(request["firstAvailable"]) {
			defaultOlderCount(alternative)
			defaultTolerations(alternative)
		}
	}
}

func defaultOlderCount(request object.Object) {
	rule.SetDefault(request, "allocationMode", "ExactCount")
	if request["allocationMode"] == "ExactCount" {
		rule.SetDefault(request, "count", int64(1))
	}
}

func defaultTolerations(obj object.Object) {
	for _, toleration := range object.Objects(obj["tolerations"]) {
		rule.SetDefault(toleration, "operator", "Equal")
	}
}

func defaultOlderClaim(obj object.Object) {
	defaultOlderRequests(object.Child(obj, "spec"))
	for _, result := range object.Objects(object.Map(obj, "status", "allocation", "devices")["results"]) {
		defaultTolerations(result)
	}
}

func upgradeTemplate(spec object.Object) {
	if claim := object.Map(spec, "spec"); claim != nil {
		upgradeClaim(claim)
	}
}

func downgradeTemplate(spec object.Object) {
	if claim := object.Map(spec, "spec"); claim != nil {
		downgradeClaim(claim)
	}
}

func defaultOlderTemplate(obj object.Object) {
	defaultOlderRequests(object.Child(object.Child(obj, "spec"), "spec"))
}

func upgradeSlice(spec object.Object) {
	for _, device := range object.Objects(spec["devices"]) {
		basic := object.Map(device, "basic")
		delete(device, "basic")
		maps.Copy(device, basic)
	}
}

func downgradeSlice(spec object.Object) {
	for _, device := range object.Objects(spec["devices"]) {
		basic := object.Object{}
		for name, v := range device {
			if name != "name" {
				basic[name] = v
				delete(device, name)
			}
		}
		device["basic"] = basic
	}
	// Both are meaningless in v1beta1, which has no pointers.
	if spec["nodeName"] == "" {
		delete(spec, "nodeName")
	}
	if spec["allNodes"] == false {
		delete(spec, "allNodes")
	}
}

// defaultOlderSlice sets no defaults: slices have none.
func defaultOlderSlice(object.Object) {}

// flattened are the fields of v1 that v1beta1 has in another place.
var flattened = []struct {
	at *regexp.Regexp
	in string
}{
	{regexp.MustCompile(`^(spec\.devices\[\d+\])\.(attributes|bindingConditions|bindingFailureConditions|` +
		`consumesCounters|nodeAllocatableResources|taints)`), "$1.basic.$2"},
	{regexp.MustCompile(`^((?:spec\.)+devices\.requests\[\d+\])\.exactly\.`), "$1."},
}

// olderError changes the path and the value of an error of a declarative rule to v1beta1's: Kubernetes evaluates these
// rules on objects of the version that the client has sent.
func olderError(e *field.Error) {
	for _, f := range flattened {
		e.Field = f.at.ReplaceAllString(e.Field, f.in)
	}
	if r, ok := e.BadValue.(resourcev1.DeviceRequest); ok {
		request := object.Object{}
		if data, err := json.Marshal(r); err == nil {
			_ = json.Unmarshal(data, &request)
		}
		claim := object.Object{"devices": object.Object{"requests": []any{request}}}
		downgradeClaim(claim)
		e.BadValue = rule.As[resourcev1beta1.DeviceRequest](request)
	}
}
