package rule

import (
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bowsprit/bowsprit/internal/object"
)

// CategoryAll is the category of the kinds that "kubectl get all" shows.
var CategoryAll = []string{"all"}

// CategoryExtensions is the category of the kinds that extend the API.
var CategoryExtensions = []string{"api-extensions"}

// nameIsSubdomain is the rule for names of most kinds.
func nameIsSubdomain(name string, prefix bool) []string {
	return apivalidation.NameIsDNSSubdomain(name, prefix)
}

// NameIsConfigKey allows what can be a key of a ConfigMap.
func NameIsConfigKey(name string, _ bool) []string { return validation.IsConfigMapKey(name) }

// NameIsSegment allows whatever can stand in a path.
func NameIsSegment(name string, _ bool) []string {
	//lint:ignore SA1019 kube's rule, kept where kube keeps it
	return path.IsValidPathSegmentName(name)
}

// NameIsLong is the rule of the kinds whose names are validated by declarations: the prefix of a generated name is not
// looked at.
func NameIsLong(name string, prefix bool) []string {
	if prefix {
		return nil
	}
	return content.IsDNS1123Subdomain(name)
}

// NameIsAddress is the rule of the kind whose objects are named after IP addresses.
func NameIsAddress(name string, _ bool) (problems []string) {
	for _, err := range validation.IsValidIP(nil, name) {
		problems = append(problems, err.Detail)
	}
	return problems
}

// ResetStatus gives a new object the status that its Go type begins with.
func ResetStatus[T any](obj object.Object) {
	zero, err := runtime.DefaultUnstructuredConverter.ToUnstructured(new(T))
	if err == nil && zero["status"] != nil {
		obj["status"] = zero["status"]
	} else {
		delete(obj, "status")
	}
}
