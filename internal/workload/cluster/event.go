package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/object"
)

// Event is something that a component reports.
type Event struct {
	About corev1.ObjectReference
	// Type is corev1.EventTypeNormal or EventTypeWarning.
	Type            string
	Reason, Message string
	// Action is set by components that report as events.k8s.io/v1 wants it, such as kube-scheduler.
	Action string
	// Host is the node whose kubelet reports.
	Host string
}

// eventsKind are events as controllers write them.
var eventsKind = Kind[corev1.Event, *corev1.Event]{Version: "v1", Resource: "events", Kind: "Event", Prefix: "events"}

// Ref returns a reference to an object for Event.About.
func (k Kind[T, P]) Ref(obj P) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: k.apiVersion(), Kind: k.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(),
		UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
	}
}

// occurrences are the events that were reported last, by what they say.
type occurrences struct {
	mu    sync.Mutex
	names map[Event]string // of the objects
}

// occurrencesMost is how many events a component remembers, as kube's recorder does.
const occurrencesMost = 4096

// Normal reports that something happened to an object, a format and its arguments saying what.
func (c *Cluster) Normal(ctx context.Context, about corev1.ObjectReference, reason, format string, args ...any) {
	c.Report(ctx,
		Event{About: about, Type: corev1.EventTypeNormal, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// Warning is Normal for what an administrator should know.
func (c *Cluster) Warning(ctx context.Context, about corev1.ObjectReference, reason, format string, args ...any) {
	c.Report(ctx,
		Event{About: about, Type: corev1.EventTypeWarning, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// Report writes an event as kube's recorder does: into the namespace of what it is about, "default" if that has none,
// under the object's name and the time; one that says the same as one before counts there. An event that cannot be
// written is lost with a line in the log.
func (c *Cluster) Report(ctx context.Context, ev Event) {
	namespace := ev.About.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	same := ev
	same.About.ResourceVersion = ""
	c.recent.mu.Lock()
	name := c.recent.names[same]
	c.recent.mu.Unlock()
	if name != "" {
		failure := eventsKind.Edit(ctx, c, Target{Namespace: namespace, Name: name}, c.again)
		if failure == nil {
			return
		}
		if !apierrors.IsNotFound(failure) { // else it is forgotten by now, or another has deleted it
			c.lost(ctx, ev, failure)
			return
		}
	}
	name = fmt.Sprintf("%s.%x", ev.About.Name, c.Now().UnixNano())
	if err := c.write(ctx, namespace, name, ev); err != nil {
		c.lost(ctx, ev, err)
		return
	}
	c.recent.mu.Lock()
	defer c.recent.mu.Unlock()
	if c.recent.names == nil || len(c.recent.names) >= occurrencesMost {
		c.recent.names = map[Event]string{}
	}
	c.recent.names[same] = name
}

func (c *Cluster) lost(ctx context.Context, ev Event, err error) {
	if ctx.Err() == nil {
		c.Log.Info("an event is lost", "about", ev.About.Kind+" "+ev.About.Namespace+"/"+ev.About.Name,
			"reason", ev.Reason, "error", err)
	}
}

// again counts an event once more.
func (c *Cluster) again(raw object.Object) error {
	now := c.Now().UTC()
	if object.String(raw, "eventTime") != "" {
		series := object.Child(raw, "series")
		n, ok := object.Int(series, "count")
		if !ok {
			n = 1
		}
		series["count"], series["lastObservedTime"] = n+1, now.Format(metav1.RFC3339Micro)
		return nil
	}
	n, _ := object.Int(raw, "count")
	raw["count"], raw["lastTimestamp"] = n+1, now.Format(time.RFC3339)
	return nil
}

func (c *Cluster) write(ctx context.Context, namespace, name string, ev Event) error {
	call, err := eventsKind.call(c, namespace, "")
	if err != nil {
		return err
	}
	about, err := toObject(&ev.About)
	if err != nil {
		return err
	}
	now := c.Now().UTC()
	event := object.Object{
		"metadata":       object.Object{"name": name, "namespace": namespace},
		"involvedObject": about, "type": ev.Type, "reason": ev.Reason, "message": ev.Message,
		"reportingComponent": c.Component,
	}
	if ev.Action != "" {
		event["action"], event["eventTime"] = ev.Action, now.Format(metav1.RFC3339Micro)
		event["reportingInstance"] = c.Component + "-bowsprit"
	} else {
		source := object.Object{"component": c.Component}
		if ev.Host != "" {
			source["host"], event["reportingInstance"] = ev.Host, ev.Host
		}
		at := now.Format(time.RFC3339)
		event["source"], event["count"], event["firstTimestamp"], event["lastTimestamp"] = source, int64(1), at, at
	}
	if event, err = c.Verbs.New(call, event); err != nil {
		return err
	}
	_, err = c.Verbs.Create(ctx, call, event, metav1.CreateOptions{FieldManager: c.Manager})
	return err
}
