package resource

import (
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func deviceClassKind() rule.Kind {
	return rule.Of[resourcev1.DeviceClass](rule.Kind{
		Group: resourceV1, Kind: "DeviceClass", Plural: "deviceclasses", ClusterScoped: true, Generation: true,
		ReturnsDeleted: true,
		Also: withOlder[resourcev1beta1.DeviceClass](
			rule.OnDemand[resourcev1beta2.DeviceClass](resourceV1beta2), nil),
		Form: olderClassForm(),
		Strategy: &catalog.Strategy{
			Cells: rule.NameAndAge, ValidName: rule.NameIsLong, UnconditionalUpdate: true,
		},
	})
}

// deviceClass validates a device class. Unchanged expressions are validated as stored ones.
func deviceClass(val *rule.Validation, p rule.Value) {
	spec, old := p.Object(), object.Map(val.Old, "spec")
	since := func(name string) age {
		if val.Old != nil && rule.Equivalent(spec[name], old[name]) {
			return stored
		}
		return fresh
	}
	deviceSelectors(val, spec["selectors"], since("selectors"), p.Path.Child("selectors"))
	list(val, rule.Objects(spec["config"]), resourcev1.DeviceConfigMaxSize, p.Path.Child("config"),
		func(c object.Object, at *field.Path) {
			deviceConfig(val, c, since("config"), at)
		})
	if name, ok := spec["extendedResourceName"].(string); ok && name != old["extendedResourceName"] {
		val.Invalids(p.Path.Child("extendedResourceName"), name, extendedName(name))
	}
}

// extendedName returns the errors of the name of an extended resource (k8s.io/apimachinery/pkg/api/validate,
// ExtendedResourceName).
func extendedName(name string) (wrong []string) {
	const own, requests = "kubernetes.io/", "requests."
	switch {
	case !strings.Contains(name, "/"):
		wrong = append(wrong, "a name must be a domain-prefixed path, such as 'example.com/my-prop'")
	case strings.Contains(name, own):
		wrong = append(wrong, fmt.Sprintf("must not have %q domain", own))
	}
	if strings.HasPrefix(name, requests) {
		wrong = append(wrong, fmt.Sprintf("must not have %q prefix", requests))
	}
	return append(wrong, content.IsLabelKey(requests+name)...)
}

// deviceClassFunctions are the functions that device_class.txt names.
func deviceClassFunctions() rule.Functions {
	return rule.Functions{
		"deviceClass": deviceClass,
	}
}
