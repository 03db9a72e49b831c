package rule

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object"
)

// Warnings collects the warnings about one object.
type Warnings struct {
	Obj, Old object.Object // old is nil for a creation
	Texts    []string
}

// Addf adds a warning about the field at path.
func (w *Warnings) Addf(path *field.Path, format string, args ...any) {
	w.Texts = append(w.Texts, path.String()+": "+fmt.Sprintf(format, args...))
}

// AddText adds a warning unchanged.
func (w *Warnings) AddText(text string) { w.Texts = append(w.Texts, text) }

// Unchanged reports whether an update keeps the generation: unchanged specs cause no warnings again.
func (w *Warnings) Unchanged() bool {
	return w.Old != nil && object.Map(w.Obj, "metadata")["generation"] == object.Map(w.Old, "metadata")["generation"]
}

// NameIsHostname warns if the name of a new object is not a valid host name for its pods; where is its use.
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

// Annotations returns the object's annotations.
func (w *Warnings) Annotations() map[string]string {
	return StringMap(object.Map(w.Obj, "metadata")["annotations"])
}

// Label returns a label of the object, "" if it has none of the name.
func (w *Warnings) Label(name string) string {
	return object.String(object.Map(w.Obj, "metadata", "labels"), name)
}

// IP warns about an address that is not in canonical form.
func (w *Warnings) IP(path *field.Path, s string) {
	w.Texts = append(w.Texts, validation.GetWarningsForIP(path, s)...)
}

// CIDR warns about an address range that is not in canonical form.
func (w *Warnings) CIDR(path *field.Path, s string) {
	w.Texts = append(w.Texts, validation.GetWarningsForCIDR(path, s)...)
}

// WarnLoadBalancer warns about the addresses of a load balancer.
func WarnLoadBalancer(w *Warnings) {
	for i, ingress := range Objects(object.Map(w.Obj, "status", "loadBalancer")["ingress"]) {
		if ip := object.String(ingress, "ip"); ip != "" {
			w.IP(field.NewPath("status", "loadBalancer", "ingress").Index(i), ip)
		}
	}
}
