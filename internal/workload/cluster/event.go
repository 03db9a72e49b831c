package cluster

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
)

// Event is something that a component reports.
type Event struct {
	About corev1.ObjectReference
	// Type is corev1.EventTypeNormal or EventTypeWarning.
	Type            string
	Reason, Message string
	// Action is set by components that report in the style of events.k8s.io/v1, such as kube-scheduler.
	Action string
	// Host is the node of the reporting kubelet.
	Host string
}

// eventsKind are events as controllers write them.
var eventsKind = Kind[corev1.Event, *corev1.Event]{ref.Events}

// Ref returns a reference to an object for Event.About.
func (k Kind[T, P]) Ref(obj P) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: k.apiVersion(), Kind: k.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(),
		UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
	}
}

// Normal records a Normal event about an object.
func (c *Cluster) Normal(ctx context.Context, about corev1.ObjectReference, reason, format string, args ...any) {
	c.Report(ctx,
		Event{About: about, Type: corev1.EventTypeNormal, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// Warning records a Warning event about an object.
func (c *Cluster) Warning(ctx context.Context, about corev1.ObjectReference, reason, format string, args ...any) {
	c.Report(ctx,
		Event{About: about, Type: corev1.EventTypeWarning, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// Report records an event as client-go's recorder does. The event goes into the namespace of its object ("default" for
// cluster-scoped objects), and is named by the object's name and the time. A repeated event increments the count of the
// earlier one, and similar events are combined (correlator). Report does not wait for the write unless very many events
// are queued. An event that cannot be written is logged and dropped.
func (c *Cluster) Report(ctx context.Context, ev Event) {
	namespace := cmp.Or(ev.About.Namespace, metav1.NamespaceDefault)
	c.events.take(ctx, report{Event: ev, by: c, namespace: namespace, at: c.Now().UTC()})
}

// write writes an event, or increments the count of the equal event with the given name. It returns the name of the
// event that holds the report.
func write(ctx context.Context, r *report, name string) string {
	c := r.by
	if name != "" {
		failure := eventsKind.Edit(ctx, c, Target{Namespace: r.namespace, Name: name}, r.again)
		if failure == nil {
			return name
		}
		if !apierrors.IsNotFound(failure) { // NotFound: the event has expired or was deleted
			r.lost(ctx, failure)
			return name
		}
	}
	name = fmt.Sprintf("%s.%x", r.About.Name, r.at.UnixNano())
	if err := r.create(ctx, name); err != nil {
		r.lost(ctx, err)
		return ""
	}
	return name
}

func (r *report) lost(ctx context.Context, err error) {
	if ctx.Err() == nil && !NamespaceEnds(err) { // events about a namespace's objects go with the namespace
		r.by.Log.Info("an event is lost", "about", r.About.Kind+" "+r.About.Namespace+"/"+r.About.Name,
			"reason", r.Reason, "error", err)
	}
}

// again counts an event once more.
func (r *report) again(raw object.Object) error {
	if object.String(raw, "eventTime") != "" {
		series := object.Child(raw, "series")
		n, ok := object.Int(series, "count")
		if !ok {
			n = 1
		}
		series["count"], series["lastObservedTime"] = n+1, r.at.Format(metav1.RFC3339Micro)
		return nil
	}
	n, _ := object.Int(raw, "count")
	raw["count"], raw["lastTimestamp"] = n+1, r.at.Format(time.RFC3339)
	if r.combined {
		raw["message"] = r.Message // a combined event carries the latest message
	}
	return nil
}

func (r *report) create(ctx context.Context, name string) error {
	c := r.by
	call, err := eventsKind.call(c, r.namespace, "")
	if err != nil {
		return err
	}
	raw, err := eventsKind.complete(c, call, r.event(name))
	if err != nil {
		return err
	}
	_, err = c.Verbs.Create(ctx, call, raw, metav1.CreateOptions{FieldManager: c.Manager})
	return err
}

// event returns the Event for the first report of its kind.
func (r *report) event(name string) *corev1.Event {
	component := r.by.Component
	ev := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: name, Namespace: r.namespace},
		InvolvedObject: r.About, Type: r.Type, Reason: r.Reason, Message: r.Message, ReportingController: component,
	}
	if r.Action != "" {
		ev.Action, ev.EventTime = r.Action, metav1.NewMicroTime(r.at)
		ev.ReportingInstance = component + "-bowsprit"
		return ev
	}
	at := metav1.NewTime(r.at)
	ev.Source = corev1.EventSource{Component: component, Host: r.Host}
	ev.ReportingInstance, ev.Count, ev.FirstTimestamp, ev.LastTimestamp = r.Host, 1, at, at
	return ev
}
