package pod

import (
	"github.com/bowsprit/bowsprit/internal/object"
)

// mirrorServiceAccount synchronizes serviceAccountName and its older name; the newer one counts.
func mirrorServiceAccount(spec object.Object) {
	name := object.String(spec, "serviceAccountName")
	if name == "" {
		name = object.String(spec, "serviceAccount")
	}
	if name != "" {
		spec["serviceAccountName"], spec["serviceAccount"] = name, name
	} else {
		delete(spec, "serviceAccount")
	}
}

// DefaultTemplate sets defaults for kinds with a pod template at spec.template.
func DefaultTemplate(obj object.Object) {
	spec, _ := obj["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	if podSpec, ok := template["spec"].(map[string]any); ok {
		DefaultSpec(podSpec)
	}
}

// DefaultSpec sets the defaults of a pod spec that depend on other fields.
func DefaultSpec(spec object.Object) {
	mirrorServiceAccount(spec)
	RoundUp(spec, "overhead")
	roundResources(spec)
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		for _, c := range object.Objects(spec[list]) {
			roundResources(c)
			if object.String(c, "imagePullPolicy") == "" {
				c["imagePullPolicy"] = pullPolicy(object.String(c, "image"))
			}
		}
	}
	for _, v := range object.Objects(spec["volumes"]) {
		if len(v) == 1 && v["name"] != nil || len(v) == 0 {
			v["emptyDir"] = map[string]any{}
		}
		if ephemeral, ok := v["ephemeral"].(map[string]any); ok {
			if template, ok := ephemeral["volumeClaimTemplate"].(map[string]any); ok {
				RoundClaim(template)
			}
		}
		if image, ok := v["image"].(map[string]any); ok && object.String(image, "pullPolicy") == "" {
			image["pullPolicy"] = pullPolicy(object.String(image, "reference"))
		}
	}
}

// TemplateLabels returns the labels of spec.template, or nil.
func TemplateLabels(spec object.Object) object.Object {
	template, _ := spec["template"].(map[string]any)
	meta, _ := template["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	return labels
}
