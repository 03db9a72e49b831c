package assistant

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/assistant/answer"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
)

const (
	// eventsPerRequest and maxEvents bound the events that are read and sorted.
	eventsPerRequest = 500
	maxEvents        = 5000
)

// eventsInput are the parameters of events.
type eventsInput struct {
	Namespace     string `json:"namespace,omitempty" jsonschema:"the namespace (default: that of the context)"`
	AllNamespaces bool   `json:"allNamespaces,omitempty" jsonschema:"the events of all namespaces"`
	Kind          string `json:"kind,omitempty" jsonschema:"only events about objects of this kind, such as Pod"`
	Name          string `json:"name,omitempty" jsonschema:"only events about objects with this name"`
	Warnings      bool   `json:"warnings,omitempty" jsonschema:"only events of type Warning"`
	Size
}

func (t *Tools) events(ctx context.Context, in *eventsInput) (*answer.Answer, error) {
	ans := &answer.Answer{}
	namespace := ""
	if in.AllNamespaces {
		ans.Field("namespace", "all")
	} else {
		var err error
		if namespace, err = t.namespace(in.Namespace); err != nil {
			return nil, err
		}
		ans.Field("namespace", "%q", namespace)
	}
	options := t.eventOptions(in)
	var all []corev1.Event
	for {
		list, err := t.builtin.CoreV1().Events(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
		if len(all) >= maxEvents {
			ans.Field("incomplete", "the namespace has more than %d events: name a kind or an object", maxEvents)
			break
		}
	}
	slices.SortStableFunc(all, func(a, b corev1.Event) int {
		return cmp.Or(lastSeen(&b).Compare(lastSeen(&a)), cmp.Compare(a.Name, b.Name))
	})
	ans.Field("events", "%d, the newest first", len(all))
	head := []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "COUNT", "MESSAGE"}
	if in.AllNamespaces {
		head = append([]string{"NAMESPACE"}, head...)
	}
	ans.Head = answer.Row(head...)
	for i := range all {
		ans.Lines = append(ans.Lines, t.eventRow(&all[i], in.AllNamespaces))
	}
	return ans, nil
}

// eventOptions returns the options of the request for events.
func (t *Tools) eventOptions(in *eventsInput) metav1.ListOptions {
	selector := fields.Set{}
	if in.Kind != "" {
		selector["involvedObject.kind"] = in.Kind
		if r, err := connect.Named(t.discovery, in.Kind); err == nil { // else the kind is not served anymore
			selector["involvedObject.kind"] = r.Kind
		}
	}
	if in.Name != "" {
		selector["involvedObject.name"] = in.Name
	}
	if in.Warnings {
		selector["type"] = corev1.EventTypeWarning
	}
	return metav1.ListOptions{Limit: eventsPerRequest, FieldSelector: selector.AsSelector().String()}
}

func (t *Tools) eventRow(e *corev1.Event, withNamespace bool) string {
	count := e.Count
	if e.Series != nil {
		count = e.Series.Count
	}
	seen := "<unknown>"
	if last := lastSeen(e); !last.IsZero() {
		seen = duration.HumanDuration(t.now().Sub(last))
	}
	cells := []string{seen, e.Type, e.Reason, e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name,
		strconv.Itoa(int(max(count, 1))), e.Message}
	if withNamespace {
		cells = append([]string{e.Namespace}, cells...)
	}
	return answer.Row(cells...)
}

// lastSeen returns the time of the last occurrence of an event.
func lastSeen(e *corev1.Event) time.Time {
	if e.Series != nil && !e.Series.LastObservedTime.IsZero() {
		return e.Series.LastObservedTime.Time
	}
	for _, at := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time, e.FirstTimestamp.Time} {
		if !at.IsZero() {
			return at
		}
	}
	return e.CreationTimestamp.Time
}
