package crd

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// decodeUpstream decodes a body like kube-apiserver: strictly into the v1 type, with defaults.
func decodeUpstream(raw []byte) (def *apiextensionsv1.CustomResourceDefinition, strict []string, err error) {
	def = &apiextensionsv1.CustomResourceDefinition{}
	problems, err := kjson.UnmarshalStrict(raw, def, kjson.DisallowUnknownFields)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range problems {
		strict = append(strict, p.Error())
	}
	return def, strict, nil
}

func toInternal(def *apiextensionsv1.CustomResourceDefinition) (*apiextensions.CustomResourceDefinition, error) {
	out := &apiextensions.CustomResourceDefinition{}
	err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(def.DeepCopy(),
		out, nil)
	return out, err
}

// validateUpstream returns upstream's errors; old is nil for a new definition. panicked is the value of upstream's
// panic.
func validateUpstream(def, old *apiextensionsv1.CustomResourceDefinition) (errs field.ErrorList, panicked any) {
	defer func() { panicked = recover() }()
	in, err := toInternal(def)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}, nil
	}
	if old == nil {
		return validation.ValidateCustomResourceDefinition(context.Background(), in), nil
	}
	was, err := toInternal(old)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}, nil
	}
	return validation.ValidateCustomResourceDefinitionUpdate(context.Background(), in, was), nil
}

// selfType matches the random name that CEL gives the type of self.
var selfType = regexp.MustCompile(`selfType\d+`)

// texts returns errors as a client sees them, as a multiset.
func texts(errs field.ErrorList) map[string]int {
	out := map[string]int{}
	for _, e := range errs {
		if e.Field == "spec.versions" && strings.Contains(e.Error(), `"Default":{`) ||
			strings.HasPrefix(e.Detail, "only [") {
			// The value holds whole schemas, which upstream's check of defaults may have changed.
			e = field.Invalid(field.NewPath(e.Field), "", e.Detail)
		}
		out[selfType.ReplaceAllString(fmt.Sprintf("%s | %s", e.Type, e.Error()), "selfType")]++
	}
	return out
}

// difference returns the errors that only one of the two has, or "".
func difference(ours, theirs map[string]int) string {
	var b strings.Builder
	for text, n := range ours {
		if n != theirs[text] {
			fmt.Fprintf(&b, "ours %d, upstream %d: %.2000s\n", n, theirs[text], text)
		}
	}
	for text, n := range theirs {
		if ours[text] == 0 {
			fmt.Fprintf(&b, "ours 0, upstream %d: %.2000s\n", n, text)
		}
	}
	return b.String()
}

func mustJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
