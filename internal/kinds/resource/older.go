package resource

import (
	"bytes"
	"encoding/json"
	"fmt"

	resourcev1beta1 "k8s.io/api/resource/v1beta1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// older is the version in which Kubernetes 1.32 and 1.33 stored the kinds of this group.
const older = "v1beta1"

// olderForm reads objects that an older kube-apiserver has stored in v1beta1, of Go type T, which has some fields in
// other places than v1, and other numbers of them in protobuf. upgrade moves them, in place, within the spec. What is
// written is v1 (pkg/apis/resource/v1beta1/conversion.go of Kubernetes).
func olderForm[T any](upgrade func(spec object.Object)) *catalog.Form {
	name := []byte(`"resource.k8s.io/` + older + `"`)
	return &catalog.Form{
		Types:  map[string]func() any{older: func() any { return new(T) }},
		Encode: func(doc []byte) ([]byte, error) { return doc, nil },
		Decode: func(raw []byte) ([]byte, error) {
			// Here and in kube-apiserver apiVersion and kind are all that comes before metadata.
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

func olderClaimForm() *catalog.Form { return olderForm[resourcev1beta1.ResourceClaim](upgradeClaim) }

func olderTemplateForm() *catalog.Form {
	return olderForm[resourcev1beta1.ResourceClaimTemplate](func(spec object.Object) {
		if claim := object.Map(spec, "spec"); claim != nil {
			upgradeClaim(claim)
		}
	})
}

func olderSliceForm() *catalog.Form { return olderForm[resourcev1beta1.ResourceSlice](upgradeSlice) }

func olderClassForm() *catalog.Form {
	return olderForm[resourcev1beta1.DeviceClass](func(object.Object) {})
}

// exactFields are those of a request for one kind of device, which v1 has below exactly.
var exactFields = []string{"deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations",
	"capacity"}

func upgradeClaim(spec object.Object) {
	requests, _ := object.Map(spec, "devices")["requests"].([]any)
	for _, r := range requests {
		request, _ := r.(object.Object)
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
			exactly["deviceClassName"] = "" // written in any case
		}
		request["exactly"] = exactly
	}
}

func upgradeSlice(spec object.Object) {
	devices, _ := spec["devices"].([]any)
	for _, d := range devices {
		device, _ := d.(object.Object)
		basic, _ := device["basic"].(object.Object)
		delete(device, "basic")
		for name, v := range basic {
			device[name] = v
		}
	}
}
