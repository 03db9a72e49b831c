package aggregation

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// leftoversRemain is the condition of an APIService with leftovers of its group. It is absent without them.
const leftoversRemain = "LeftoversRemain"

// describeDebts writes the conditions of the APIServices of a group.
func (c *cleaner) describeDebts(ctx context.Context, group string) error {
	namespaces := c.ledger.NamespacesOf(group)
	message := ""
	if n := len(namespaces); n > 0 {
		message = fmt.Sprintf("objects of %d deleted namespaces may remain: %s; the ConfigMaps leftovers.* in %s have the "+
			"state", n, firstOf(namespaces), metav1.NamespaceSystem)
	}
	for _, r := range c.remotesOf(group) {
		if err := c.describe(ctx, r, message); err != nil {
			return err
		}
	}
	return nil
}

// describe writes the condition of one APIService if it has changed.
func (c *cleaner) describe(ctx context.Context, r *remote, message string) error {
	e := c.host.View.Collection(ref.APIServices.Prefix).Snapshot().Get("", r.name)
	if e == nil {
		return nil
	}
	s := read(e)
	if s == nil {
		return nil
	}
	i := slices.IndexFunc(s.Status.Conditions, func(one apiregistrationv1.APIServiceCondition) bool {
		return one.Type == leftoversRemain
	})
	if i < 0 && message == "" || i >= 0 && s.Status.Conditions[i].Message == message {
		return nil
	}
	call, err := c.host.Verbs.Call(Resource, "", r.name, verb.ServerUser())
	if err != nil {
		return err
	}
	call = call.Under("status")
	_, err = c.host.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: manager},
		func(obj object.Object) (object.Object, error) {
			status := object.Child(obj, "status")
			status["conditions"] = c.withDebts(object.List(status, "conditions"), message)
			return c.host.Verbs.New(call, obj)
		})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// withDebts returns conditions with the condition of leftovers, or without it if there are none.
func (c *cleaner) withDebts(conditions []any, message string) []any {
	next := object.Object{
		"type": leftoversRemain, "status": string(apiregistrationv1.ConditionTrue), "reason": "ServerDidNotAnswer",
		"message": message, "lastTransitionTime": c.host.Now().UTC().Format(timeFormat),
	}
	for i, one := range object.Objects(conditions) {
		if one["type"] != leftoversRemain {
			continue
		}
		if message == "" {
			return slices.Delete(conditions, i, i+1)
		}
		next["lastTransitionTime"] = one["lastTransitionTime"]
		conditions[i] = next
		return conditions
	}
	if message == "" {
		return conditions
	}
	return append(conditions, next)
}
