package quota

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/configuration"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Plugin is the admission plugin ResourceQuota.
type Plugin struct {
	View *watchcache.View
	// Update changes the status of a quota by compare-and-swap: change gets the newest state, perhaps several times.
	Update func(ctx context.Context, namespace, name string, change func(quota map[string]any) error) error
	Now    func() time.Time
	// Limited are resources of which a namespace may have none unless a quota counts them.
	Limited []configuration.Limited

	mu struct {
		sync.Mutex
		spaces map[string]*space // by namespace, those that have had a quota
	}
}

var _ admit.Validator = (*Plugin)(nil)

// space is a namespace with quotas.
type space struct {
	// One charge at a time: writers of this process do not fight for the status of a quota.
	charging sync.Mutex

	mu sync.Mutex
	// pending are the charges whose object is not in the view yet. What the controller counts is short of them.
	pending map[objectKey]charge
}

type objectKey struct{ prefix, name string }

type charge struct {
	usage Usage
	until time.Time // then the write has ended one way or another
}

// pendingFor is longer than a request may take.
const pendingFor = 2 * time.Minute

// Name returns kube's name for the plugin.
func (*Plugin) Name() string { return "ResourceQuota" }

// Validate charges a new object to the quotas of its namespace, or refuses it.
func (p *Plugin) Validate(ctx context.Context, a *admit.Attributes) error {
	if a.Operation != admit.Create || a.Subresource != "" || !Counted(a.Resource) {
		return nil
	}
	quotas := p.View.Collection("resourcequotas")
	none := quotas.Snapshot().Count(a.Namespace, "") == 0
	if none && len(p.Limited) == 0 {
		return nil
	}
	wanted := Of(a.Resource, a.Object)
	uncovered := p.limited(a.Resource, wanted)
	if none && len(uncovered) == 0 {
		return nil
	}
	meta, _ := a.Object["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	if p.View.Collection(a.Resource.Prefix).Snapshot().Get(a.Namespace, name) != nil {
		return nil // it will be refused for that; there is nothing to charge
	}
	s := p.space(a.Namespace)
	s.charging.Lock()
	defer s.charging.Unlock()
	// The view must show the charges before this one: a quota that was charged for what another one then refuses stays
	// charged until the controller counts again.
	if _, err := p.View.Fresh(ctx); err != nil {
		return err
	}

	charged, err := p.ask(a, wanted, uncovered)
	if err != nil {
		return admit.Forbidden(a, err)
	}
	if a.DryRun || len(charged) == 0 {
		return nil
	}
	p.note(a.Namespace, s, objectKey{a.Resource.Prefix, name}, charge{wanted, p.Now().Add(pendingFor)})
	if err := p.charge(ctx, a, charged, wanted); err != nil {
		s.forget(objectKey{a.Resource.Prefix, name})
		return err
	}
	return nil
}

// ask asks all quotas of the namespace first, so that none is charged for what another one refuses. It returns the
// names of those that count what is wanted, or the reason to refuse it. What a quota covers goes out of uncovered.
func (p *Plugin) ask(a *admit.Attributes, wanted, uncovered Usage) (charged []string, refusal error) {
	uncounted := false // refusal is of a quota whose objects have not been counted yet
	p.View.Collection("resourcequotas").Snapshot().Scan(a.Namespace, "", func(e *watchcache.Entry) bool {
		var q corev1.ResourceQuota
		if json.Unmarshal(e.JSON(), &q) != nil {
			return true
		}
		used, err := add(&q, wanted)
		uncounted = errors.As(err, new(unknownStatus))
		if err != nil && refusal == nil || uncounted {
			refusal = err
		}
		if used != nil {
			charged = append(charged, q.Name)
		}
		if !scoped(&q) {
			maps.DeleteFunc(uncovered,
				func(name string, _ int64) bool { _, ok := q.Status.Hard[corev1.ResourceName(name)]; return ok })
		}
		return !uncounted
	})
	if len(uncovered) > 0 && !uncounted {
		refusal = fmt.Errorf("insufficient quota to consume: %s",
			strings.Join(slices.Sorted(maps.Keys(uncovered)), ","))
	}
	return charged, refusal
}

// charge adds what is wanted to the status of quotas.
func (p *Plugin) charge(ctx context.Context, a *admit.Attributes, quotas []string, wanted Usage) error {
	for _, quota := range quotas {
		err := p.Update(ctx, a.Namespace, quota, func(obj map[string]any) error {
			used, err := addTo(obj, wanted)
			if err != nil {
				return admit.Forbidden(a, err)
			}
			if used != nil {
				status, _ := obj["status"].(map[string]any)
				status["used"] = used
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// addTo is add for decoded JSON.
func addTo(obj map[string]any, wanted Usage) (map[string]any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var q corev1.ResourceQuota
	if err := json.Unmarshal(data, &q); err != nil {
		return nil, err
	}
	used, err := add(&q, wanted)
	if used == nil || err != nil {
		return nil, err
	}
	out := map[string]any{}
	for name, quantity := range used {
		out[string(name)] = quantity.String()
	}
	return out, nil
}

// add returns what status.used of a quota is with what is wanted; nil if the quota does not count it. The error says,
// in kube's words, why there is no room for it.
func add(q *corev1.ResourceQuota, wanted Usage) (corev1.ResourceList, error) {
	if scoped(q) {
		return nil, nil // scopes are about pods
	}
	var names []string
	for name := range wanted {
		if _, limited := q.Status.Hard[corev1.ResourceName(name)]; limited {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	used := maps.Clone(q.Status.Used)
	var unknown, requested, have, limit []string
	changes := false
	for _, name := range names {
		key := corev1.ResourceName(name)
		was, known := q.Status.Used[key]
		if !known {
			unknown = append(unknown, name)
			continue
		}
		more := resource.NewQuantity(wanted[name], resource.DecimalSI)
		sum := was.DeepCopy()
		sum.Add(*more)
		if hard := q.Status.Hard[key]; wanted[name] > 0 && sum.Cmp(hard) > 0 {
			requested = append(requested, name+"="+more.String())
			have = append(have, name+"="+was.String())
			limit = append(limit, name+"="+hard.String())
		}
		changes = changes || wanted[name] > 0
		used[key] = sum
	}
	switch {
	case len(unknown) > 0:
		return nil, unknownStatus{q.Name, names}
	case len(requested) > 0:
		return nil, fmt.Errorf("exceeded quota: %s, requested: %s, used: %s, limited: %s",
			q.Name, strings.Join(requested, ","), strings.Join(have, ","), strings.Join(limit, ","))
	case !changes:
		return nil, nil
	}
	return used, nil
}

// unknownStatus is the error about a quota whose objects have not been counted yet. It comes before all others.
type unknownStatus struct {
	quota string
	names []string
}

func (u unknownStatus) Error() string {
	return fmt.Sprintf("status unknown for quota: %s, resources: %s", u.quota, strings.Join(u.names, ","))
}

// Limits reports whether an entry of the configuration can refuse anything: by a name that objects are counted under,
// and not by a scope.
func Limits(l configuration.Limited) bool {
	for name := range Of(&catalog.Resource{Group: l.Group, Plural: l.Resource, Namespaced: true}, nil) {
		if limits(l, name) {
			return len(l.MatchScopes) == 0
		}
	}
	return false
}

// limits reports whether an entry is about what is counted by a name.
func limits(l configuration.Limited, name string) bool {
	return slices.ContainsFunc(l.MatchContains, func(part string) bool { return strings.Contains(name, part) })
}

// limited returns the part of wanted that a namespace may not have without a quota that counts it, nil for nothing.
func (p *Plugin) limited(r *catalog.Resource, wanted Usage) Usage {
	var out Usage
	for _, l := range p.Limited {
		if l.Group != r.Group || l.Resource != r.Plural {
			continue
		}
		for name, n := range wanted {
			if n > 0 && limits(l, name) {
				if out == nil {
					out = Usage{}
				}
				out[name] = n
			}
		}
	}
	return out
}

func scoped(q *corev1.ResourceQuota) bool {
	return len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil && len(q.Spec.ScopeSelector.MatchExpressions) > 0
}

// Pending returns what has been charged in a namespace for objects that are not in the view yet.
func (p *Plugin) Pending(namespace string) Usage {
	s := p.space(namespace)
	s.mu.Lock()
	defer s.mu.Unlock()
	p.pruneLocked(namespace, s)
	sum := Usage{}
	for _, c := range s.pending {
		for name, n := range c.usage {
			sum[name] += n
		}
	}
	return sum
}

// pruneLocked forgets the charges whose object is in the view, or will not come any more.
func (p *Plugin) pruneLocked(namespace string, s *space) {
	maps.DeleteFunc(s.pending, func(key objectKey, c charge) bool {
		return p.View.Collection(key.prefix).Snapshot().Get(namespace, key.name) != nil || p.Now().After(c.until)
	})
}

func (p *Plugin) space(namespace string) *space {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.mu.spaces[namespace]
	if s == nil {
		s = &space{pending: map[objectKey]charge{}}
		if p.mu.spaces == nil {
			p.mu.spaces = map[string]*space{}
		}
		p.mu.spaces[namespace] = s
	}
	return s
}

// pendingLimit is how many charges may be noted before those are looked for that can be forgotten.
const pendingLimit = 1000

func (p *Plugin) note(namespace string, s *space, key objectKey, c charge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) >= pendingLimit {
		p.pruneLocked(namespace, s)
	}
	s.pending[key] = c
}

func (s *space) forget(key objectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, key)
}
