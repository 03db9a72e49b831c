package assistant

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
)

const (
	// maxPlans bounds the plans that wait.
	maxPlans = 32
	// planLife is the time within which a plan must be used.
	planLife = 10 * time.Minute
)

// action is the action of a plan.
type action string

const (
	applies action = "plan"
	deletes action = "plan_delete"
)

// plan is a list of changes that were tried on the server.
type plan struct {
	name    string
	action  action
	expires time.Time
	caller  string // the user and the server
	force   bool   // takes fields over from other managers
	steps   []step
}

// step is the change of one object.
type step struct {
	resource *connect.Resource
	// object is the manifest, or for a deletion the object.
	object *unstructured.Unstructured
	// before is the content of the object before the change. It is empty if the object does not exist.
	before string
}

// client returns the client for the object of a step.
func (t *Tools) client(s *step) dynamic.ResourceInterface {
	all := t.objects.Resource(s.resource.GroupVersionResource)
	if !s.resource.Namespaced {
		return all
	}
	return all.Namespace(s.object.GetNamespace())
}

// String names the object of a step.
func (s *step) String() string {
	name := s.object.GetName()
	if s.resource.Namespaced {
		name = s.object.GetNamespace() + "/" + name
	}
	return title(s.resource) + " " + name
}

// plans are the plans that wait, the oldest first.
type plans struct {
	most int // 0 for maxPlans
	mu   sync.Mutex
	all  []*plan
}

// put keeps a plan, and returns its name. It drops the oldest beyond the bound.
func (p *plans) put(one *plan) string {
	one.name = string(one.action) + "-" + strings.ToLower(rand.Text()[:10])
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, one)
	p.all = slices.Delete(p.all, 0, max(0, len(p.all)-cmp.Or(p.most, maxPlans)))
	return one.name
}

// take returns a plan, which can be taken once, until it expires.
func (p *plans) take(name string, action action, now time.Time) (*plan, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.all, func(one *plan) bool { return one.name == name && one.action == action })
	if i < 0 {
		return nil, fmt.Errorf("there is no plan %q of the tool %s: it was used or dropped; make a new one", name, action)
	}
	one := p.all[i]
	p.all = slices.Delete(p.all, i, i+1)
	if !now.Before(one.expires) {
		return nil, fmt.Errorf("the plan %q has expired after %s: make a new one", name, planLife)
	}
	return one, nil
}

// keep keeps a plan for the caller.
func (t *Tools) keep(ctx context.Context, one *plan) (name string, err error) {
	if one.caller, err = t.caller(ctx); err != nil {
		return "", err
	}
	one.expires = t.now().Add(planLife)
	return t.plans.put(one), nil
}

// errOther is the error of a plan for another user or server.
var errOther = errors.New("the plan belongs to another user or server than the requests of now: make a new one")

// use returns a plan to execute, which ends it.
func (t *Tools) use(ctx context.Context, name string, action action) (*plan, error) {
	one, err := t.plans.take(name, action, t.now())
	if err != nil {
		return nil, err
	}
	caller, err := t.caller(ctx)
	if err != nil {
		return nil, err
	}
	if caller != one.caller {
		return nil, errOther
	}
	return one, nil
}

// caller returns the user and the server of requests, as the server reports them.
func (t *Tools) caller(ctx context.Context) (string, error) {
	review, err := t.builtin.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("the server's report of your user: %w", err)
	}
	user := review.Status.UserInfo
	slices.Sort(user.Groups)
	server := ""
	switch system, err := t.builtin.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{}); {
	case err == nil:
		server = string(system.UID)
	case !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err):
		return "", err
	}
	data, err := json.Marshal([]any{user.Username, user.UID, user.Groups, server})
	return string(data), err
}

// content returns a digest of the content of an object: of everything but its status and the fields that the server
// counts with.
func content(obj *unstructured.Unstructured) (string, error) {
	obj = obj.DeepCopy()
	delete(obj.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	data, err := json.Marshal(obj.Object)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return string(sum[:]), nil
}

// unchanged returns the object of a step as it is, or nil. It fails if the content is not that of the plan.
func (t *Tools) unchanged(ctx context.Context, s *step) (*unstructured.Unstructured, error) {
	obj, err := t.client(s).Get(ctx, s.object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		obj, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	is := ""
	if obj != nil {
		if is, err = content(obj); err != nil {
			return nil, err
		}
	}
	if is != s.before {
		return nil, fmt.Errorf("%s was changed since the plan was made: make a new plan", s)
	}
	return obj, nil
}

// allUnchanged fails if the content of an object is not that of the plan.
func (t *Tools) allUnchanged(ctx context.Context, one *plan) error {
	for i := range one.steps {
		if _, err := t.unchanged(ctx, &one.steps[i]); err != nil {
			return err
		}
	}
	return nil
}
