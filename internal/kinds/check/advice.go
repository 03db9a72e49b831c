package check

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Advise returns what Kubernetes warns about in an object that it accepts: fields that do nothing any more,
// definitions that hide one another, names that surprise. old is nil for a creation, subresource "" for the object
// itself.
//
// Source: WarningsOnCreate and WarningsOnUpdate of pkg/registry/*/*/strategy.go, Kubernetes 1.36.
func Advise(kind string, obj, old object, subresource string) []string {
	a := advice{obj: obj, old: old}
	if subresource != "" {
		kind += "/" + subresource
	}
	if f := advisers[kind]; f != nil {
		f(&a)
	}
	return a.texts
}

// advisers are the kinds that there is something to say about. It is never changed.
var advisers = map[string]func(*advice){
	"CronJob":                          (*advice).cronJob,
	"CSIDriver":                        (*advice).csiDriver,
	"CSIStorageCapacity":               (*advice).storageCapacity,
	"DaemonSet":                        (*advice).workload,
	"Deployment":                       (*advice).namedWorkload,
	"Endpoints":                        (*advice).endpoints,
	"EndpointSlice":                    (*advice).endpointSlice,
	"Ingress":                          (*advice).ingress,
	"Ingress/status":                   (*advice).balancer,
	"Job":                              (*advice).job,
	"MutatingAdmissionPolicy":          (*advice).staticSuffix,
	"MutatingAdmissionPolicyBinding":   (*advice).staticSuffix,
	"MutatingWebhookConfiguration":     (*advice).staticSuffix,
	"NetworkPolicy":                    (*advice).networkPolicy,
	"Node":                             (*advice).node,
	"PersistentVolume":                 (*advice).volume,
	"PersistentVolumeClaim":            (*advice).claim,
	"Pod":                              (*advice).pod,
	"Pod/status":                       (*advice).podStatus,
	"PodTemplate":                      (*advice).podTemplate,
	"ReplicaSet":                       (*advice).namedWorkload,
	"ReplicationController":            (*advice).replicationController,
	"ResourceQuota":                    (*advice).resourceQuota,
	"ResourceSlice":                    (*advice).resourceSlice,
	"RuntimeClass":                     (*advice).runtimeClass,
	"Service":                          (*advice).service,
	"Service/status":                   (*advice).balancer,
	"StatefulSet":                      (*advice).statefulSet,
	"StorageClass":                     (*advice).storageClass,
	"ValidatingAdmissionPolicy":        (*advice).staticSuffix,
	"ValidatingAdmissionPolicyBinding": (*advice).staticSuffix,
	"ValidatingWebhookConfiguration":   (*advice).staticSuffix,
}

// advice is the work on one object.
type advice struct {
	obj, old object // old is nil for a creation
	texts    []string
}

func (a *advice) say(path *field.Path, format string, args ...any) {
	a.texts = append(a.texts, path.String()+": "+fmt.Sprintf(format, args...))
}

func (a *advice) plainly(text string) { a.texts = append(a.texts, text) }

// stays says whether an update leaves the generation as it is: what did not change is not commented on again.
func (a *advice) stays() bool {
	return a.old != nil && inner(a.obj, "metadata")["generation"] == inner(a.old, "metadata")["generation"]
}

// name wants the name of a new object to be one that its pods can have as their host name; where says what it is used
// in.
func (a *advice) name(where string) {
	if a.old != nil {
		return
	}
	if problems := validation.IsDNS1123Label(text1(inner(a.obj, "metadata"), "name")); len(problems) > 0 {
		a.say(field.NewPath("metadata", "name"),
			"this is used in %s, which can result in surprising behavior; a DNS label is recommended: %v", where,
			problems)
	}
}

func (a *advice) annotations() map[string]string {
	return pairs(inner(a.obj, "metadata")["annotations"])
}

func (a *advice) label(name string) string {
	return text1(inner(a.obj, "metadata", "labels"), name)
}

func (a *advice) ip(path *field.Path, s string) {
	a.texts = append(a.texts, validation.GetWarningsForIP(path, s)...)
}

func (a *advice) cidr(path *field.Path, s string) {
	a.texts = append(a.texts, validation.GetWarningsForCIDR(path, s)...)
}

// wholeBytes wants amounts of bytes to be integers.
func (a *advice) wholeBytes(amounts object, path *field.Path, names ...string) {
	for _, name := range names {
		if amounts[name] == nil {
			continue
		}
		if q := quantity(amounts[name]); q.MilliValue()%1000 != 0 {
			a.say(path.Key(name), "fractional byte value %q is invalid, must be an integer", q.String())
		}
	}
}

// podStatus speaks about addresses in the status of a pod.
func (a *advice) podStatus() {
	for _, list := range []string{"podIPs", "hostIPs"} {
		for i, ip := range objects(inner(a.obj, "status")[list]) {
			a.ip(field.NewPath("status", list).Index(i).Child("ip"), text1(ip, "ip"))
		}
	}
}

// balancer speaks about the addresses of a load balancer.
func (a *advice) balancer() {
	for i, ingress := range objects(inner(a.obj, "status", "loadBalancer")["ingress"]) {
		if ip := text1(ingress, "ip"); ip != "" {
			a.ip(field.NewPath("status", "loadBalancer", "ingress").Index(i), ip)
		}
	}
}

// staticSuffix is about the names that kube-apiserver's own configuration files have.
func (a *advice) staticSuffix() {
	const suffix = ".static.k8s.io"
	if strings.HasSuffix(text1(inner(a.obj, "metadata"), "name"), suffix) {
		a.say(field.NewPath("metadata", "name"),
			"names ending with %q are reserved for static manifest-based configurations and cannot be managed via the API", suffix)
	}
}

func (a *advice) resourceQuota() {
	if a.old != nil {
		return
	}
	hard := inner(a.obj, "spec", "hard")
	for _, name := range []string{"cpu", "memory", "storage", "ephemeral-storage"} {
		request, limit := "requests."+name, "limits."+name
		if hard[request] == nil && (name == "cpu" || name == "memory") {
			request = name
		}
		if hard[request] == nil || hard[limit] == nil {
			continue
		}
		least, most := quantity(hard[request]), quantity(hard[limit])
		if least.Cmp(most) > 0 {
			a.plainly(fmt.Sprintf("ResourceQuota %s (%s) should be less than %s (%s)", request, &least, limit, &most))
		}
	}
}

func (a *advice) resourceSlice() {
	if driver := text1(inner(a.obj, "spec"), "driver"); driver != strings.ToLower(driver) {
		a.say(field.NewPath("spec", "driver"), "driver names should be lowercase; %q contains uppercase characters",
			driver)
	}
}
