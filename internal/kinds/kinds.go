package kinds

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// The groups, with the priorities of kube-apiserver's table.
var (
	coreV1                  = group{"", "v1", 18000, 1}
	appsV1                  = group{"apps", "v1", 17800, 15}
	eventsV1                = group{"events.k8s.io", "v1", 17750, 15}
	authenticationV1        = group{"authentication.k8s.io", "v1", 17700, 15}
	authorizationV1         = group{"authorization.k8s.io", "v1", 17600, 15}
	autoscalingV2           = group{"autoscaling", "v2", 17500, 30}
	batchV1                 = group{"batch", "v1", 17400, 15}
	certificatesV1          = group{"certificates.k8s.io", "v1", 17300, 15}
	networkingV1            = group{"networking.k8s.io", "v1", 17200, 15}
	policyV1                = group{"policy", "v1", 17100, 15}
	rbacV1                  = group{"rbac.authorization.k8s.io", "v1", 17000, 15}
	storageV1               = group{"storage.k8s.io", "v1", 16800, 15}
	apiextensionsV1         = group{"apiextensions.k8s.io", "v1", 16700, 15}
	admissionregistrationV1 = group{"admissionregistration.k8s.io", "v1", 16700, 15}
	schedulingV1            = group{"scheduling.k8s.io", "v1", 16600, 15}
	coordinationV1          = group{"coordination.k8s.io", "v1", 16500, 15}
	nodeV1                  = group{"node.k8s.io", "v1", 16300, 15}
	discoveryV1             = group{"discovery.k8s.io", "v1", 16200, 15}
	resourceV1              = group{"resource.k8s.io", "v1", 16200, 21}
	flowcontrolV1           = group{"flowcontrol.apiserver.k8s.io", "v1", 16100, 21}
	storagemigrationV1beta1 = group{"storagemigration.k8s.io", "v1beta1", 15800, 9}
)

// Those that are served on demand.
var (
	coordinationV1beta1          = group{"coordination.k8s.io", "v1beta1", 16500, 13}
	coordinationV1alpha2         = group{"coordination.k8s.io", "v1alpha2", 16500, 12}
	networkingV1beta1            = group{"networking.k8s.io", "v1beta1", 17200, 9}
	storageV1beta1               = group{"storage.k8s.io", "v1beta1", 16800, 9}
	admissionregistrationV1beta1 = group{"admissionregistration.k8s.io", "v1beta1", 16700, 12}
	resourceV1beta2              = group{"resource.k8s.io", "v1beta2", 16200, 15}
)

// all is the category of the kinds that "kubectl get all" shows, extends that of the kinds that extend the API.
var (
	all     = []string{"all"}
	extends = []string{"api-extensions"}
)

// views are the verbs of a subresource that shows a part of the object.
var views = []string{"get", "patch", "update"}

// fields makes the FieldLabels of paths like "spec.nodeName", whose values are strings.
func fields(paths ...string) map[string]func(catalog.Object) string {
	out := map[string]func(catalog.Object) string{}
	for _, p := range paths {
		out[p] = textAt(strings.Split(p, ".")...)
	}
	return out
}

// podFields are the FieldLabels of pods.
func podFields() map[string]func(catalog.Object) string {
	out := fields("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
		"status.phase", "status.nominatedNodeName")
	out["spec.host"] = out["spec.nodeName"]
	out["spec.hostNetwork"] = truthAt("spec", "hostNetwork")
	out["status.podIP"] = func(pod catalog.Object) string {
		for _, ip := range catalog.Objects(catalog.At(pod, "status")["podIPs"]) {
			return catalog.Text(ip, "ip")
		}
		return ""
	}
	out["status.podIPs"] = func(catalog.Object) string { return "" } // Kubernetes takes it and finds nothing
	return out
}

// object is a subresource that takes the object itself.
func object(k, name string, verbs ...string) catalog.Subresource {
	return catalog.Subresource{Name: name, Kind: metav1.GroupVersionKind{Kind: k}, Verbs: verbs, Object: true}
}

// other is a subresource that takes something else than the object; group and version are "" if they are the object's.
func other(name, group, version, k string, verbs ...string) catalog.Subresource {
	return catalog.Subresource{
		Name: name, Kind: metav1.GroupVersionKind{Group: group, Version: version, Kind: k}, Verbs: verbs,
	}
}

// nameIsSubdomain is the rule for names of most kinds.
func nameIsSubdomain(name string, prefix bool) []string {
	return apivalidation.NameIsDNSSubdomain(name, prefix)
}

// nameIsConfigKey allows what can be a key of a ConfigMap.
func nameIsConfigKey(name string, _ bool) []string { return validation.IsConfigMapKey(name) }

// nameIsSegment allows whatever can stand in a path.
func nameIsSegment(name string, _ bool) []string {
	//lint:ignore SA1019 kube's rule, kept where kube keeps it
	return path.IsValidPathSegmentName(name)
}

// nameIsLong is the rule of the kinds whose names are judged by declarations: nobody looks at what a generated one
// begins with.
func nameIsLong(name string, prefix bool) []string {
	if prefix {
		return nil
	}
	return content.IsDNS1123Subdomain(name)
}

// nameIsAddress is the rule of the kind whose objects are named after IP addresses.
func nameIsAddress(name string, _ bool) (problems []string) {
	for _, err := range validation.IsValidIP(nil, name) {
		problems = append(problems, err.Detail)
	}
	return problems
}

// resetStatus gives a new object the status that its Go type begins with.
func resetStatus[T any](obj catalog.Object) {
	zero, err := runtime.DefaultUnstructuredConverter.ToUnstructured(new(T))
	if err == nil && zero["status"] != nil {
		obj["status"] = zero["status"]
	} else {
		delete(obj, "status")
	}
}

func singular(kind string) string { return strings.ToLower(kind) }
