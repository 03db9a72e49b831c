package control

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

// occurrence is something that a controller reports as a v1 Event.
type occurrence struct {
	component       string // the reporter: "garbage-collector-controller"
	about           corev1.ObjectReference
	kind            string // corev1.EventTypeWarning, EventTypeNormal
	reason, message string
}

// record writes an event like Kubernetes' event recorder: into the namespace of the object, or "default", with a name
// from the object's name and the time.
func (c Config) record(ctx context.Context, o occurrence) error {
	namespace := o.about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	call, err := c.Verbs.Call(catalog.GroupResource{Resource: "events"}, namespace, "", ControllerUser(o.component))
	if err != nil {
		return err
	}
	now := c.Now()
	about := object.Object{
		"kind": o.about.Kind, "name": o.about.Name, "apiVersion": o.about.APIVersion, "uid": string(o.about.UID),
	}
	if o.about.Namespace != "" {
		about["namespace"] = o.about.Namespace
	}
	at := now.UTC().Format(time.RFC3339)
	event, err := c.Verbs.New(call, object.Object{
		"metadata": object.Object{
			"name": fmt.Sprintf("%s.%x", o.about.Name, now.UnixNano()), "namespace": namespace,
		},
		"involvedObject": about, "type": o.kind, "reason": o.reason, "message": o.message,
		"source": object.Object{"component": o.component}, "reportingComponent": o.component,
		"firstTimestamp": at, "lastTimestamp": at, "count": int64(1),
	})
	if err != nil {
		return err
	}
	_, err = c.Verbs.Create(ctx, call, event, metav1.CreateOptions{FieldManager: "kube-controller-manager"})
	return err
}
