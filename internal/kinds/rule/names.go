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

// NameIsConfigKey accepts valid keys of a ConfigMap.
func NameIsConfigKey(name string, _ bool) []string { return validation.IsConfigMapKey(name) }

// NameIsSegment accepts every valid path segment.
func NameIsSegment(name string, _ bool) []string {
	//lint:ignore SA1019 kube's rule, kept where kube keeps it
	return path.IsValidPathSegmentName(name)
}

// NameIsLong is the rule of kinds with declarative name validation: it does not check the prefix of a generated name.
func NameIsLong(name string, prefix bool) []string {
	if prefix {
		return nil
	}
	return content.IsDNS1123Subdomain(name)
}

// NameIsAddress is the rule of the kind with IP addresses as names.
func NameIsAddress(name string, _ bool) (problems []string) {
	for _, err := range validation.IsValidIP(nil, name) {
		problems = append(problems, err.Detail)
	}
	return problems
}

// ResetStatus sets the initial status of the Go type on a new object.
func ResetStatus[T any](obj object.Object) {
	zero, err := runtime.DefaultUnstructuredConverter.ToUnstructured(new(T))
	if err == nil && zero["status"] != nil {
		obj["status"] = zero["status"]
	} else {
		delete(obj, "status")
	}
}
