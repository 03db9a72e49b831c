package rule

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object"
)

// Warnings is the work on one object.
type Warnings struct {
	Obj, Old object.Object // old is nil for a creation
	Texts    []string
}

// Addf adds a warning about the field at path.
func (w *Warnings) Addf(path *field.Path, format string, args ...any) {
	w.Texts = append(w.Texts, path.String()+": "+fmt.Sprintf(format, args...))
}

// AddText adds a warning as it is.
func (w *Warnings) AddText(text string) { w.Texts = append(w.Texts, text) }

// Unchanged says whether an update leaves the generation as it is: what did not change is not commented on again.
func (w *Warnings) Unchanged() bool {
	return w.Old != nil && object.Map(w.Obj, "metadata")["generation"] == object.Map(w.Old, "metadata")["generation"]
}

// NameIsHostname wants the name of a new object to be one that its pods can have as their host name; where says what
// it is used in.
func (w *Warnings) NameIsHostname(where string) {
	if w.Old != nil {
		return
	}
	if problems := validation.IsDNS1123Label(object.String(object.Map(w.Obj, "metadata"), "name")); len(problems) > 0 {
		w.Addf(field.NewPath("metadata", "name"),
			"this is used in %s, which can result in surprising behavior; a DNS label is recommended: %v", where,
			problems)
	}
}

// Annotations returns those of the object.
func (w *Warnings) Annotations() map[string]string {
	return StringMap(object.Map(w.Obj, "metadata")["annotations"])
}

// Label returns a label of the object, "" if it has none of the name.
func (w *Warnings) Label(name string) string {
	return object.String(object.Map(w.Obj, "metadata", "labels"), name)
}

// IP warns about an address that is not written as Kubernetes writes it.
func (w *Warnings) IP(path *field.Path, s string) {
	w.Texts = append(w.Texts, validation.GetWarningsForIP(path, s)...)
}

// CIDR warns about a range of addresses that is not written as Kubernetes writes it.
func (w *Warnings) CIDR(path *field.Path, s string) {
	w.Texts = append(w.Texts, validation.GetWarningsForCIDR(path, s)...)
}

// WarnLoadBalancer speaks about the addresses of a load balancer.
func WarnLoadBalancer(w *Warnings) {
	for i, ingress := range Objects(object.Map(w.Obj, "status", "loadBalancer")["ingress"]) {
		if ip := object.String(ingress, "ip"); ip != "" {
			w.IP(field.NewPath("status", "loadBalancer", "ingress").Index(i), ip)
		}
	}
}
