// Package clusterroles aggregates into ClusterRoles the rules of the roles that they select.
//
// It is Kubernetes' clusterrole-aggregation-controller as a loop: every change of a ClusterRole requests all aggregated
// roles, and the loop applies changed rules. Its keys are names of aggregated roles. Source:
// k8s.io/kubernetes/pkg/controller/clusterroleaggregation.
package clusterroles

import (
	"context"
	"encoding/json"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/auth/rbac"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// Controller is Kubernetes' name for the loop; manager is the name of its user and field manager.
const (
	Controller = "clusterrole-aggregation-controller"
	manager    = "clusterrole-aggregation-controller"
)

// Part brings the loop. Start aggregates the default roles admin, edit and view, so that a binding to one of them
// grants its rules from the first request on.
func Part() part.Part {
	return part.Part{
		Name: "aggregated roles",
		Loops: []part.Loop{{
			Name: Controller, Workers: 1, New: func(h *part.Host) control.Reconciler {
				return &loop{host: h, aggregated: map[string]bool{}}
			},
		}},
		Start: func(ctx context.Context, h *part.Host) error {
			if !h.Runs(Controller) {
				return nil
			}
			if err := start(ctx, h); err != nil {
				h.Log.Warn("default ClusterRoles lack aggregated rules; their controller adds them later", "error", err)
			}
			return nil
		},
	}
}

// defaults are the default roles with aggregation rules. Each selects the role before it.
var defaults = []string{"view", "edit", "admin"}

// start reconciles the default roles.
func start(ctx context.Context, h *part.Host) error {
	ctx, cancel := h.Starting(ctx)
	defer cancel()
	l := &loop{host: h}
	for _, name := range defaults {
		if _, err := h.View.Fresh(ctx); err != nil {
			return err
		}
		if err := l.Reconcile(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

type loop struct {
	host *part.Host
	// aggregated are the names of the roles that gather rules; Observe only.
	aggregated map[string]bool
}

// Observe requests every aggregated role: Reconcile finds out which of them a change concerns.
func (l *loop) Observe(ev *watchcache.Event, need func(string)) {
	if ev.Collection.Prefix() != rbac.ClusterRolesPrefix {
		return
	}
	delete(l.aggregated, ev.Entry.Name)
	if ev.Type != watchcache.Deleted {
		if raw, err := codec.Field(ev.Entry.JSON(), "aggregationRule"); err == nil && len(raw) > 0 {
			l.aggregated[ev.Entry.Name] = true
		}
	}
	for name := range l.aggregated {
		need(name)
	}
}

// content is the part of a role that the loop needs.
type content struct {
	AggregationRule *rbacv1.AggregationRule `json:"aggregationRule"`
	Rules           []rbacv1.PolicyRule     `json:"rules"`
}

func read(e *watchcache.Entry) (c content, err error) {
	if err := json.Unmarshal(e.JSON(), &c); err != nil {
		return c, fmt.Errorf("ClusterRole %s: %w", e.Name, err)
	}
	return c, nil
}

func (l *loop) Reconcile(ctx context.Context, name string) error {
	roles := l.host.View.Collection(rbac.ClusterRolesPrefix).Snapshot()
	e := roles.Get("", name)
	if e == nil {
		return nil
	}
	have, err := read(e)
	if err != nil || have.AggregationRule == nil {
		return err
	}
	want, err := gather(roles, name, have.AggregationRule.ClusterRoleSelectors)
	if err != nil || equality.Semantic.DeepEqual(want, have.Rules) {
		return err
	}
	return l.apply(ctx, name, want)
}

// gather returns the rules of the roles that the selectors select, without duplicates: selector by selector, each with
// its roles by name.
func gather(
	roles *watchcache.Snapshot, self string, selectors []metav1.LabelSelector,
) (rules []rbacv1.PolicyRule, err error) {
	for i := range selectors {
		selector, err := metav1.LabelSelectorAsSelector(&selectors[i])
		if err != nil {
			return nil, err
		}
		var broken error
		roles.Scan("", "", func(e *watchcache.Entry) bool {
			if e.Name == self || !selector.Matches(labels.Set(e.Labels)) {
				return true
			}
			var c content
			if c, broken = read(e); broken != nil {
				return false
			}
			for _, r := range c.Rules {
				if !contains(rules, r) {
					rules = append(rules, r)
				}
			}
			return true
		})
		if broken != nil {
			return nil, broken
		}
	}
	return rules, nil
}

func contains(rules []rbacv1.PolicyRule, r rbacv1.PolicyRule) bool {
	for i := range rules {
		if equality.Semantic.DeepEqual(rules[i], r) {
			return true
		}
	}
	return false
}

// apply applies the rules of a role, taking them over from any other field manager.
func (l *loop) apply(ctx context.Context, name string, rules []rbacv1.PolicyRule) error {
	call, err := l.host.Verbs.Call(ref.ClusterRoles.GroupResource(), "", name,
		control.ControllerUser(manager))
	if err != nil {
		return err
	}
	role := map[string]any{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "ClusterRole",
		"metadata": map[string]any{"name": name},
	}
	if len(rules) > 0 {
		role["rules"] = rules
	}
	body, err := json.Marshal(role)
	if err != nil {
		return err
	}
	force := true
	_, err = l.host.Verbs.Apply(ctx, call, decode.Patch{Type: types.ApplyYAMLPatchType, Data: body},
		metav1.PatchOptions{FieldManager: manager, Force: &force})
	return err
}
