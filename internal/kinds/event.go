package kinds

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// Lengths of an event's fields, in bytes.
const (
	maxReportingInstance = 128
	maxAction            = 128
	maxReason            = 128
	maxMessage           = 1024
)

// validateEvent judges an event of core/v1. One with an eventTime is of the newer form, which has stricter rules;
// metadata is not looked at in either, because event names of old clients would not pass.
func validateEvent(e *corev1.Event) errorList { return checkEvent(e, "reportingComponent") }

// checkEvent is validateEvent for either group; controller is its name for what reports the event.
func checkEvent(e *corev1.Event, controller string) errorList {
	var errs errorList
	if e.EventTime.IsZero() {
		errs = checkOldEvent(e)
	} else {
		errs = checkNewEvent(e, controller)
	}
	for _, msg := range validation.IsDNS1123Subdomain(e.Namespace) {
		errs = append(errs, field.Invalid(field.NewPath("namespace"), e.Namespace, msg))
	}
	return errs
}

// checkOldEvent wants the event in the namespace of what it is about; in "default" if that has none.
func checkOldEvent(e *corev1.Event) errorList {
	about := e.InvolvedObject.Namespace
	fits := about == e.Namespace
	if about == "" {
		fits = e.Namespace == metav1.NamespaceNone || e.Namespace == metav1.NamespaceDefault
	}
	if fits {
		return nil
	}
	return errorList{foreignEvent(about)}
}

func checkNewEvent(e *corev1.Event, controller string) errorList {
	var errs errorList
	if e.InvolvedObject.Namespace == "" && e.Namespace != metav1.NamespaceDefault &&
		e.Namespace != metav1.NamespaceSystem {
		errs = append(errs, foreignEvent(""))
	}
	required := func(name, value string) {
		if value == "" {
			errs = append(errs, field.Required(field.NewPath(name), ""))
		}
	}
	atMost := func(name, value string, limit int) {
		if len(value) > limit {
			errs = append(errs,
				field.Invalid(field.NewPath(name), "", fmt.Sprintf("can have at most %v characters", limit)))
		}
	}
	required(controller, e.ReportingController)
	for _, msg := range validation.IsQualifiedName(e.ReportingController) {
		errs = append(errs, field.Invalid(field.NewPath(controller), e.ReportingController, msg))
	}
	required("reportingInstance", e.ReportingInstance)
	atMost("reportingInstance", e.ReportingInstance, maxReportingInstance)
	required("action", e.Action)
	atMost("action", e.Action, maxAction)
	required("reason", e.Reason)
	atMost("reason", e.Reason, maxReason)
	atMost("message", e.Message, maxMessage)
	return errs
}

func foreignEvent(namespace string) *field.Error {
	return field.Invalid(field.NewPath("involvedObject", "namespace"), namespace, "does not match event.namespace")
}

// eventFields are the fields that selectors may use.
func eventFields() map[string]func(catalog.Object) string {
	out := map[string]func(catalog.Object) string{
		"reason":             textAt("reason"),
		"type":               textAt("type"),
		"reportingComponent": textAt("reportingComponent"),
		"source": func(obj catalog.Object) string {
			if s := catalog.Text(obj, "source", "component"); s != "" {
				return s
			}
			return catalog.Text(obj, "reportingComponent")
		},
	}
	for _, name := range []string{"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"} {
		out["involvedObject."+name] = textAt("involvedObject", name)
	}
	return out
}

func eventCells(obj catalog.Object, e catalog.Env) []any {
	first := firstOf(catalog.Text(obj, "firstTimestamp"), catalog.Text(obj, "eventTime"))
	last := firstOf(catalog.Text(obj, "lastTimestamp"), first)
	count, _ := obj["count"].(int64)
	if series, ok := obj["series"].(map[string]any); ok {
		last = catalog.Text(series, "lastObservedTime")
		count, _ = series["count"].(int64)
	} else if count == 0 {
		count = 1 // an event that happened once has no count in the newer form
	}
	about := strings.ToLower(catalog.Text(obj, "involvedObject", "kind"))
	if name := catalog.Text(obj, "involvedObject", "name"); name != "" {
		about += "/" + name
	}
	source := firstOf(catalog.Text(obj, "source", "component"), catalog.Text(obj, "reportingComponent"))
	if host := firstOf(catalog.Text(obj, "source", "host"), catalog.Text(obj, "reportingInstance")); host != "" {
		source += ", " + host
	}
	return []any{
		since(last, e.Now),
		catalog.Text(obj, "type"),
		catalog.Text(obj, "reason"),
		about,
		catalog.Text(obj, "involvedObject", "fieldPath"),
		source,
		strings.TrimSpace(catalog.Text(obj, "message")),
		since(first, e.Now),
		count,
		catalog.Text(obj, "metadata", "name"),
	}
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
