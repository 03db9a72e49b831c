package play

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/stage"
)

// maxLogged is how many failures are remembered, so that each is in the log once.
const maxLogged = 1000

// log logs the errors of Stages for an object. A failure that many objects share is logged for the first one only.
func (p *player) log(t target, err error) {
	p.mu.Lock()
	known := p.logged[err.Error()] || len(p.logged) >= maxLogged
	p.logged[err.Error()] = true
	p.mu.Unlock()
	if !known {
		p.Log.Warn("a stage cannot be evaluated; the object goes on without it", "kind", t.of.Kind,
			"object", t.entry.Key(), "error", err)
	}
}

// report records, by an event and in the log, that a Stage could not be played for an object. It records nothing if the
// object is gone or was recreated, since that is not the Stage's fault.
func (p *player) report(ctx context.Context, t target, s *stage.Stage, err error) {
	now := p.View.Collection(t.of.Prefix).Snapshot().Get(t.entry.Namespace, t.entry.Name)
	if now == nil || now.UID != t.entry.UID || ctx.Err() != nil {
		return
	}
	var failure *stage.Failure
	if !errors.As(err, &failure) {
		err = &stage.Failure{Stage: s, Err: err}
	}
	p.Log.Warn("a stage failed; the object stays as it is until it changes", "kind", t.of.Kind, "object", t.entry.Key(),
		"error", err)
	p.Warning(ctx, p.reference(t), "StageFailed", "%v", err)
}

// accepted is the condition of Stages that clients have created.
const accepted = "Accepted"

// reportStatus writes to the status of a client's Stage whether it is usable. If not, it also records an event and logs
// the error.
func (p *player) reportStatus(ctx context.Context, name string) error {
	e, why, ok := p.stages.verdict(name)
	if !ok || e.Deleting {
		return nil
	}
	condition := object.Object{"type": accepted, "status": "True", "reason": "Valid", "message": p.scope(e)}
	if why != nil {
		condition["status"], condition["reason"], condition["message"] = "False", "Invalid", why.Error()
	}
	changed, err := p.mark(ctx, e, condition)
	if err != nil {
		return control.IgnoreNotFound(err)
	}
	if why != nil && changed {
		p.Log.Warn("a stage is wrong and left out", "stage", name, "error", why)
		p.Warning(ctx, corev1.ObjectReference{
			APIVersion: e.APIVersion, Kind: stage.Kind, Name: name, UID: types.UID(e.UID),
		}, "InvalidStage", "%v", why)
	}
	return nil
}

// scope describes the objects that a Stage is played for.
func (p *player) scope(e *watchcache.Entry) string {
	s, err := stage.Parse(e.JSON())
	switch {
	case err != nil:
		return ""
	case !s.Selects():
		return "it has no selector and matches nothing"
	}
	r := p.Catalog.Snapshot().ByKind(s.Of.Group, s.Of.Kind)
	switch {
	case r == nil || r.Version(s.Of.Version) == nil:
		return fmt.Sprintf("it is played when there are objects of kind %s of %s, which the server does not have",
			s.Of.Kind, s.Of.GroupVersion())
	case s.Of.GroupKind() == cluster.PodKind:
		return "it is played for pods on simulated nodes"
	case s.Of.GroupKind() == cluster.NodeKind:
		return "it is played for simulated nodes"
	}
	return "it is played for " + r.Qualified()
}

// mark puts a condition into the status of a Stage, and reports whether it was another.
func (p *player) mark(ctx context.Context, e *watchcache.Entry, condition object.Object) (changed bool, err error) {
	same := func(status string) bool {
		var had struct {
			Conditions []struct{ Type, Status, Reason, Message string }
		}
		_ = json.Unmarshal([]byte(status), &had) // on an error there are no conditions
		for _, c := range had.Conditions {
			if c.Type == accepted {
				return c.Status == condition["status"] && c.Reason == condition["reason"] &&
					c.Message == condition["message"]
			}
		}
		return false
	}
	if status, _ := e.Field("status"); same(status) {
		return false, nil
	}
	call, err := p.Verbs.Call(catalog.GroupResource{Group: stage.Group, Resource: stage.Plural}, "", e.Name, p.User)
	if err != nil {
		return false, err
	}
	if call.Resource.HasSubresource(call.Version, "status") {
		call = call.Under("status")
	}
	condition["lastTransitionTime"] = p.Now().UTC().Format(time.RFC3339)
	_, err = p.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: p.Manager},
		func(obj object.Object) (object.Object, error) {
			status := object.Child(obj, "status")
			conditions := []any{condition}
			if had, ok := status["conditions"].([]any); ok {
				for _, c := range had {
					if m, ok := c.(object.Object); !ok || m["type"] != accepted {
						conditions = append(conditions, c)
					}
				}
			}
			status["conditions"] = conditions
			return obj, nil
		})
	return err == nil, err
}
