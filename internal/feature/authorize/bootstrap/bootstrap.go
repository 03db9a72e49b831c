// Package bootstrap creates the default roles and bindings of a cluster.
//
// It is a part. policy.jsonl holds the roles and bindings, and Start reconciles the stored objects with them before the
// first request: it creates missing objects, adds missing rules and subjects, removes nothing, and skips objects with
// rbac.authorization.kubernetes.io/autoupdate set to "false". It follows
// k8s.io/component-helpers/auth/rbac/reconciliation. Failures are retried every second, and reported by the health
// check poststarthook/rbac/bootstrap-roles.
package bootstrap

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/part"
)

// policy holds the roles and bindings of Kubernetes with its default features, one object a line, with sorted keys.
// test/oracle-builtins compares it with Kubernetes' own.
//
//go:embed policy.jsonl
var policy string

// Object is one role or binding of the policy.
type Object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	AggregationRule *rbacv1.AggregationRule `json:"aggregationRule"`
	Rules           []rbacv1.PolicyRule     `json:"rules"`
	RoleRef         rbacv1.RoleRef          `json:"roleRef"`
	Subjects        []rbacv1.Subject        `json:"subjects"`

	json string
}

// lines are the objects of a policy as JSON.
func lines(policy string) []string { return strings.Split(strings.TrimSuffix(policy, "\n"), "\n") }

// Objects returns the policy, with the additions of the given enabled features.
func Objects(features ...string) ([]Object, error) {
	policy, err := policyWith(features)
	if err != nil {
		return nil, err
	}
	var all []Object
	for _, line := range policy {
		o := Object{json: line}
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		all = append(all, o)
	}
	return all, nil
}

// resource returns the plural name of the object's kind, which is also the name of its collection.
func (o *Object) resource() string { return strings.ToLower(o.Kind) + "s" }

const (
	retryEvery = time.Second
	// writers is how many objects are made at a time.
	writers = 16
)

// Check is the name of the health check.
const Check = "poststarthook/rbac/bootstrap-roles"

var errNotFinished = errors.New("not finished")

// Part adds the roles and bindings, with the additions of the named Kubernetes features.
func Part(features []string) part.Part {
	var done atomic.Bool
	return part.Part{
		Name: "bootstrap roles",
		Start: func(ctx context.Context, h *part.Host) error {
			policy, err := policyWith(features)
			if err != nil {
				return err
			}
			b := &bootstrap{host: h, policy: policy}
			ctx, cancel := h.Starting(ctx)
			defer cancel()
			if err = b.run(ctx); err == nil {
				done.Store(true)
				return nil
			}
			h.Log.Warn("roles that every cluster has cannot be made; retried every second", "error", err)
			h.Background(func(ctx context.Context) error {
				b.retry(ctx, func() { done.Store(true) })
				return nil
			})
			return nil
		},
		Checks: func(*part.Host) []front.Check {
			return []front.Check{{Name: Check, Run: func(context.Context) error {
				if !done.Load() {
					return errNotFinished
				}
				return nil
			}}}
		},
	}
}

type bootstrap struct {
	host   *part.Host
	policy []string // objects as JSON
}

// retry runs until everything is reconciled, or ctx ends.
func (b *bootstrap) retry(ctx context.Context, done func()) {
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := b.run(ctx)
		if err == nil {
			done()
			return
		}
		if ctx.Err() == nil {
			b.host.Log.Warn("roles that every cluster has cannot be made; retried every second", "error", err)
		}
	}
}

// run reconciles every object of the policy once. It writes nothing if all are up to date.
func (b *bootstrap) run(ctx context.Context) error {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for _, line := range b.policy {
		if strings.Contains(line, `"kind":"ClusterRoleBinding"`) && strings.Contains(line, `"name":"`+splitOff+`"`) {
			if err := b.split(ctx, line); err != nil {
				return err
			}
		}
	}
	places := make(chan struct{}, writers) // bounds concurrent writes
	for _, line := range b.policy {
		if b.current(line) {
			continue
		}
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			if err := b.reconcile(ctx, line); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// current reports whether a stored object equals the policy's, apart from additions. It decodes little; if in doubt it
// returns false, and the object is reconciled.
func (b *bootstrap) current(line string) bool {
	doc := []byte(line)
	var head struct {
		Kind     string
		Metadata struct {
			Name, Namespace string
			Labels          map[string]string
		}
	}
	raw, _ := codec.Field(doc, "metadata")
	kind, _ := codec.Field(doc, "kind")
	if json.Unmarshal(kind, &head.Kind) != nil || json.Unmarshal(raw, &head.Metadata) != nil {
		return false
	}
	o := Object{TypeMeta: metav1.TypeMeta{Kind: head.Kind}}
	e := b.host.View.Collection(o.resource()).Snapshot().Get(head.Metadata.Namespace, head.Metadata.Name)
	if e == nil {
		return false
	}
	if update, _ := e.Field(`metadata.annotations.rbac\.authorization\.kubernetes\.io/autoupdate`); update != "true" {
		return false
	}
	for key, value := range head.Metadata.Labels {
		if e.Labels[key] != value {
			return false
		}
	}
	for _, name := range []string{"aggregationRule", "roleRef", "subjects", "rules"} {
		want, _ := codec.Field(doc, name)
		have, _ := codec.Field(e.Peek(), name)
		if string(want) == "null" { // the rules of an aggregated role are the controller's
			continue
		}
		if string(want) != string(have) {
			return false
		}
	}
	return true
}

func decodeLine(line string) (object.Object, error) {
	v, err := codec.DecodeJSON([]byte(line))
	if err != nil {
		return nil, err
	}
	obj, ok := v.(object.Object)
	if !ok {
		return nil, errors.New("not an object")
	}
	return obj, nil
}
