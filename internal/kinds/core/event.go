package core

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func eventKind() rule.Kind {
	return rule.Of[corev1.Event](rule.Kind{
		Group: coreV1, Kind: "Event", AnyFinalizer: true, Plural: "events", Short: []string{"ev"},
		Strategy: &catalog.Strategy{
			//lint:ignore SA1019 kube's rule for event names, kept where kube keeps it
			ValidName:           path.ValidatePathSegmentName,
			MetadataLast:        true,
			UnconditionalUpdate: true,
			CreateOnUpdate:      true,
			TTL:                 time.Hour, // Kubernetes' --event-ttl
			Dependents:          catalog.NoDependents,
			FieldLabels:         eventFields(),
			Cells:               eventCells,
		},
	})
}

// Lengths of an event's fields, in bytes.
const (
	maxReportingInstance = 128
	maxAction            = 128
	maxReason            = 128
	maxMessage           = 1024
)

// validateEvent validates an event of core/v1. One with an eventTime is of the newer form, which has stricter rules;
// metadata is not validated in either, because event names of old clients would not pass.
func validateEvent(e *corev1.Event) field.ErrorList { return checkEvent(e, "reportingComponent") }

// checkEvent is validateEvent for either group; controller is its field name of the reporting controller.
func checkEvent(e *corev1.Event, controller string) field.ErrorList {
	var errs field.ErrorList
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

// checkOldEvent requires the event to be in the namespace of its object, "default" for cluster-scoped ones.
func checkOldEvent(e *corev1.Event) field.ErrorList {
	about := e.InvolvedObject.Namespace
	fits := about == e.Namespace
	if about == "" {
		fits = e.Namespace == metav1.NamespaceNone || e.Namespace == metav1.NamespaceDefault
	}
	if fits {
		return nil
	}
	return field.ErrorList{foreignEvent(about)}
}

func checkNewEvent(e *corev1.Event, controller string) field.ErrorList {
	var errs field.ErrorList
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
func eventFields() map[string]func(object.Object) string {
	out := map[string]func(object.Object) string{
		"reason":             rule.TextAt("reason"),
		"type":               rule.TextAt("type"),
		"reportingComponent": rule.TextAt("reportingComponent"),
		"source": func(obj object.Object) string {
			if s := object.String(obj, "source", "component"); s != "" {
				return s
			}
			return object.String(obj, "reportingComponent")
		},
	}
	for _, name := range []string{"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"} {
		out["involvedObject."+name] = rule.TextAt("involvedObject", name)
	}
	return out
}

func eventCells(obj object.Object, e catalog.Env) []any {
	first := firstOf(object.String(obj, "firstTimestamp"), object.String(obj, "eventTime"))
	last := firstOf(object.String(obj, "lastTimestamp"), first)
	count, _ := obj["count"].(int64)
	if series, ok := obj["series"].(map[string]any); ok {
		last = object.String(series, "lastObservedTime")
		count, _ = series["count"].(int64)
	} else if count == 0 {
		count = 1 // in the newer form a single event has no count
	}
	about := strings.ToLower(object.String(obj, "involvedObject", "kind"))
	if name := object.String(obj, "involvedObject", "name"); name != "" {
		about += "/" + name
	}
	source := firstOf(object.String(obj, "source", "component"), object.String(obj, "reportingComponent"))
	if host := firstOf(object.String(obj, "source", "host"), object.String(obj, "reportingInstance")); host != "" {
		source += ", " + host
	}
	return []any{
		rule.Since(last, e.Now),
		object.String(obj, "type"),
		object.String(obj, "reason"),
		about,
		object.String(obj, "involvedObject", "fieldPath"),
		source,
		strings.TrimSpace(object.String(obj, "message")),
		rule.Since(first, e.Now),
		count,
		object.String(obj, "metadata", "name"),
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

// eventFunctions are the functions that event.txt names.
func eventFunctions() rule.Functions {
	return rule.Functions{
		"event": rule.Typed(validateEvent, nil),
	}
}
