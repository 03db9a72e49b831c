package core

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// newer are the fields that core/v1 and events.k8s.io/v1 name differently: the older name first.
var newer = [][2]string{
	{"involvedObject", "regarding"},
	{"message", "note"},
	{"source", "deprecatedSource"},
	{"firstTimestamp", "deprecatedFirstTimestamp"},
	{"lastTimestamp", "deprecatedLastTimestamp"},
	{"count", "deprecatedCount"},
	{"reportingComponent", "reportingController"},
}

var eventsV1 = rule.Group{Name: "events.k8s.io", Version: "v1", Priority: 17750, Rank: 15}

// eventAlias is Event of events.k8s.io/v1: the events of core/v1 with other field names, and stricter rules for writes.
func eventAlias() *catalog.Resource {
	k := rule.Of[eventsv1.Event](rule.Kind{
		Group: eventsV1, Kind: "Event", Plural: "events", Short: []string{"ev"},
		Strategy: &catalog.Strategy{
			ValidName:           rule.NameIsSegment,
			MetadataLast:        true,
			Validate:            validateAlias,
			ValidateUpdate:      validateAliasUpdate,
			UnconditionalUpdate: true,
			CreateOnUpdate:      true,
			TTL:                 time.Hour,
			Dependents:          catalog.NoDependents,
			FieldLabels:         newEventFields(),
			Cells: func(obj object.Object, e catalog.Env) []any {
				return eventCells(olderEvent(maps.Clone(obj)), e)
			},
		},
	})
	k.Columns = text().Columns("Event")
	r := k.Resource()
	r.Secondary = true
	r.Storage = &catalog.Version{
		Name: "v1", APIVersion: "v1", New: rule.NewOf[corev1.Event](), Strategy: &catalog.Strategy{},
	}
	r.Convert = func(from, to *catalog.Version, obj object.Object) error {
		if to == r.Storage {
			_, err := rule.DecodeAs[corev1.Event](olderEvent(obj))
			return err
		}
		_, err := rule.DecodeAs[eventsv1.Event](rename(obj, 0, 1))
		return err
	}
	return r
}

// olderEvent renames the fields of an event to their names in core/v1, in place.
func olderEvent(obj object.Object) object.Object { return rename(obj, 1, 0) }

func rename(obj object.Object, from, to int) object.Object {
	for _, names := range newer {
		if v, ok := obj[names[from]]; ok {
			delete(obj, names[from])
			obj[names[to]] = v
		}
	}
	return obj
}

// newEventFields are eventFields under their newer names.
func newEventFields() map[string]func(object.Object) string {
	out := rule.FieldLabels("reason", "type", "reportingController")
	for _, name := range []string{"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"} {
		out["regarding."+name] = rule.TextAt("regarding", name)
	}
	return out
}

// validateAlias reads an event as one of core/v1, since Kubernetes' errors also use these names.
func validateAlias(_ context.Context, obj object.Object) field.ErrorList {
	e, errs := rule.Read[corev1.Event](olderEvent(maps.Clone(obj)))
	if errs != nil {
		return errs
	}
	return validateNewEvent(e)
}

func validateAliasUpdate(_ context.Context, obj, old object.Object, _ string) field.ErrorList {
	e, errs := rule.Read[corev1.Event](olderEvent(maps.Clone(obj)))
	if errs != nil {
		return errs
	}
	was, errs := rule.Read[corev1.Event](olderEvent(maps.Clone(old)))
	if errs != nil {
		return errs
	}
	return validateNewEventUpdate(e, was)
}

// validateNewEvent validates the creation of an event through events.k8s.io: no field of the older form may be set.
func validateNewEvent(e *corev1.Event) field.ErrorList {
	errs := checkEvent(e, "reportingController")
	errs = append(errs,
		validation.ValidateObjectMeta(&e.ObjectMeta, true, validation.NameIsDNSSubdomain, field.NewPath("metadata"))...)
	errs = append(errs, rule.CheckFinalizers(e.Finalizers)...)
	errs = append(errs, checkSeries(e)...)
	if e.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), "", fmt.Sprintf("has invalid value: %v", e.Type)))
	}
	unset := func(name string, is bool) {
		if !is {
			errs = append(errs, field.Invalid(field.NewPath(name), "", "needs to be unset"))
		}
	}
	unset("firstTimestamp", e.FirstTimestamp.IsZero())
	unset("lastTimestamp", e.LastTimestamp.IsZero())
	unset("count", e.Count == 0)
	unset("source", e.Source == corev1.EventSource{})
	return errs
}

func checkSeries(e *corev1.Event) field.ErrorList {
	var errs field.ErrorList
	if e.Series == nil {
		return nil
	}
	if e.Series.Count < 2 {
		errs = append(errs, field.Invalid(field.NewPath("series.count"), "", "should be at least 2"))
	}
	if e.Series.LastObservedTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("series.lastObservedTime"), ""))
	}
	return errs
}

// validateNewEventUpdate allows changes of the series of an event, and of its metadata.
func validateNewEventUpdate(e, old *corev1.Event) field.ErrorList {
	errs := checkEvent(e, "reportingController")
	if !reflect.DeepEqual(e.Series, old.Series) {
		errs = append(errs, checkSeries(e)...)
	}
	same := func(name string, v, was any) {
		errs = append(errs, validation.ValidateImmutableField(v, was, field.NewPath(name))...)
	}
	same("involvedObject", e.InvolvedObject, old.InvolvedObject)
	same("reason", e.Reason, old.Reason)
	same("message", e.Message, old.Message)
	same("source", e.Source, old.Source)
	same("firstTimestamp", e.FirstTimestamp, old.FirstTimestamp)
	same("lastTimestamp", e.LastTimestamp, old.LastTimestamp)
	same("count", e.Count, old.Count)
	same("type", e.Type, old.Type)
	if !e.EventTime.Truncate(time.Microsecond).Equal(old.EventTime.Truncate(time.Microsecond)) {
		same("eventTime", e.EventTime, old.EventTime) // some clients drop smaller fractions
	}
	same("action", e.Action, old.Action)
	same("related", e.Related, old.Related)
	same("reportingController", e.ReportingController, old.ReportingController)
	same("reportingInstance", e.ReportingInstance, old.ReportingInstance)
	return errs
}
