package fairness

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// consumer is the manager of the condition, kube's name for it.
const consumer = "api-priority-and-fairness-config-consumer-v1"

// conditions writes into each FlowSchema whether its level exists. Its keys are names of FlowSchemas.
type conditions struct {
	*part.Host
	written map[string][]time.Time // by name, times within the last minute; used only by the worker
}

func newConditions(h *part.Host) control.Reconciler {
	follow(h)
	return &conditions{Host: h, written: map[string][]time.Time{}}
}

// Observe implements control.Reconciler.
func (c *conditions) Observe(ev *watchcache.Event, need func(string)) {
	switch {
	case !concerns(ev):
	case ev.Collection.Prefix() == schemas:
		need(ev.Entry.Name)
	case ev.Type != watchcache.Modified: // whichever schemas name it
		c.View.Collection(schemas).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
			need(e.Name)
			return true
		})
	}
}

// Writers that disagree about a condition must not keep each other busy.
const (
	mostInMinute = 6
	truceLeast   = 30 * time.Second
	truceMore    = 45 * time.Second
)

// Reconcile implements control.Reconciler.
func (c *conditions) Reconcile(ctx context.Context, name string) error {
	e := c.View.Collection(schemas).Snapshot().Get("", name)
	s := objectOf[flowcontrolv1.FlowSchema](e)
	if s == nil {
		delete(c.written, name)
		return nil
	}
	level := s.Spec.PriorityLevelConfiguration.Name
	want := condition(level, c.View.Collection(levels).Snapshot().Get("", level) != nil)
	for _, has := range s.Status.Conditions {
		if has.Type == want.Type && has.Status == want.Status && has.Reason == want.Reason &&
			has.Message == want.Message {
			return nil
		}
	}
	now := c.Now()
	recent := c.written[name][:0]
	for _, at := range c.written[name] {
		if now.Sub(at) <= time.Minute {
			recent = append(recent, at)
		}
	}
	c.written[name] = recent
	if len(recent) >= mostInMinute {
		return control.Again(truceLeast + rand.N(truceMore))
	}
	c.written[name] = append(recent, now)
	want.LastTransitionTime = metav1.NewTime(now)
	return control.IgnoreNotFound(c.write(ctx, name, want))
}

// condition returns the condition about the existence of a schema's level.
func condition(level string, exists bool) flowcontrolv1.FlowSchemaCondition {
	out := flowcontrolv1.FlowSchemaCondition{
		Type: flowcontrolv1.FlowSchemaConditionDangling, Status: flowcontrolv1.ConditionFalse, Reason: "Found",
	}
	const references = "This FlowSchema references the PriorityLevelConfiguration object named %q "
	if exists {
		out.Message = fmt.Sprintf(references+"and it exists", level)
		return out
	}
	out.Status, out.Reason = flowcontrolv1.ConditionTrue, "NotFound"
	out.Message = fmt.Sprintf(references+"but there is no such object", level)
	return out
}

// write applies the condition; conditions of other managers stay.
func (c *conditions) write(ctx context.Context, name string, want flowcontrolv1.FlowSchemaCondition) error {
	call, err := c.Verbs.Call(resource(schemas), "", name, verb.ServerUser())
	if err != nil {
		return err
	}
	call = call.Under("status")
	data, err := json.Marshal(map[string]any{
		"apiVersion": flowcontrolv1.SchemeGroupVersion.String(), "kind": "FlowSchema",
		"metadata": map[string]any{"name": name},
		"status":   flowcontrolv1.FlowSchemaStatus{Conditions: []flowcontrolv1.FlowSchemaCondition{want}},
	})
	if err != nil {
		return err
	}
	_, err = c.Verbs.Apply(ctx, call, decode.Patch{Type: types.ApplyYAMLPatchType, Data: data},
		metav1.PatchOptions{FieldManager: consumer, Force: new(true)})
	return err
}
