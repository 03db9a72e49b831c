package assistant

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/assistant/answer"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/manifest"
	"github.com/bowsprit/bowsprit/internal/object/sensitive"
)

const (
	// maxManifests and maxObjects bound a plan.
	maxManifests = 256 << 10
	maxObjects   = 20
	// manager is the field manager of plans.
	manager = "bowsprit-mcp"
)

// planInput are the parameters of plan.
type planInput struct {
	Manifests string `json:"manifests" jsonschema:"objects as YAML or JSON, for server-side apply"`
	Namespace string `json:"namespace,omitempty" jsonschema:"the namespace of objects without one (default: the context's)"`
	Force     bool   `json:"force,omitempty" jsonschema:"take over fields that other managers have set"`
	Size
}

func (t *Tools) plan(ctx context.Context, in *planInput) (*answer.Answer, error) {
	steps, err := t.steps(in)
	if err != nil {
		return nil, err
	}
	one := &plan{action: applies, force: in.Force, steps: steps}
	ans := &answer.Answer{}
	changes := 0
	for i := range one.steps {
		lines, err := t.try(ctx, one, &one.steps[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", &one.steps[i], err)
		}
		if len(lines) > 1 {
			changes++
		}
		for _, line := range lines {
			ans.Lines = append(ans.Lines, answer.Line(line))
		}
	}
	ans.Field("objects", "%d, changed or created: %d", len(steps), changes)
	switch {
	case changes == 0:
		ans.Field("plan", "none, because nothing would change")
	case !t.options.AllowApply:
		ans.Field("plan", "none, because the program was started without --allow-apply; nothing was changed")
	default:
		name, err := t.keep(ctx, one)
		if err != nil {
			return nil, err
		}
		ans.Field("plan", "%s, for the tool apply, once, until %s; nothing was changed", name,
			one.expires.UTC().Format("15:04:05"))
	}
	return ans, nil
}

// steps returns the objects of manifests.
func (t *Tools) steps(in *planInput) (all []step, err error) {
	if len(in.Manifests) > maxManifests {
		return nil, fmt.Errorf("the manifests have %d bytes: a plan has at most %d", len(in.Manifests), maxManifests)
	}
	var set manifest.Set
	set.Read("manifests", strings.NewReader(in.Manifests))
	switch n := len(set.Documents); {
	case n == 0 && len(set.Problems) == 0:
		return nil, errors.New("the manifests contain no object")
	case n > maxObjects:
		return nil, fmt.Errorf("the manifests have %d objects: a plan has at most %d", n, maxObjects)
	}
	namespace, err := t.namespace(in.Namespace)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i := range set.Documents {
		d := &set.Documents[i]
		if err := d.CheckName(); err != nil {
			set.Problems = append(set.Problems, err)
			continue
		}
		s, err := t.step(&unstructured.Unstructured{Object: d.Object}, namespace)
		if err != nil {
			return nil, err
		}
		if seen[s.String()] {
			set.Problems = append(set.Problems, d.Problem("metadata.name", "is the name of an object before"))
		}
		seen[s.String()] = true
		all = append(all, *s)
	}
	return all, set.Err()
}

func (t *Tools) step(obj *unstructured.Unstructured, namespace string) (*step, error) {
	r, err := connect.ResourceOf(t.discovery, obj.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	switch {
	case !r.Namespaced:
		obj.SetNamespace("")
	case obj.GetNamespace() == "":
		obj.SetNamespace(namespace)
	}
	for _, field := range []string{"managedFields", "resourceVersion", "uid"} { // of a copy of a stored object
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	return &step{resource: r, object: obj}, nil
}

// try sends a change as a dry run. It returns a line about the object, and its differences.
func (t *Tools) try(ctx context.Context, one *plan, s *step) ([]string, error) {
	fields, err := t.fields(s.resource)
	if err != nil {
		return nil, err
	}
	before, err := t.client(s).Get(ctx, s.object.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		before = nil
	case err != nil:
		return nil, err
	default:
		if s.before, err = content(before); err != nil {
			return nil, err
		}
	}
	after, err := t.send(ctx, one, s, before, metav1.DryRunAll)
	if err != nil {
		return nil, fieldConflict(err)
	}
	return t.differences(s, before, after, fields)
}

// differences returns a line about an object, and its differences: for a new object, all its fields.
func (t *Tools) differences(
	s *step, before, after *unstructured.Unstructured, fields *sensitive.Fields,
) ([]string, error) {
	after = compared(after)
	is := state{after.Object, t.shown(after, fields)}
	if before == nil {
		text, err := yaml.Marshal(is.shown)
		if err != nil {
			return nil, err
		}
		lines := []string{"created: " + s.String()}
		for line := range strings.Lines(string(text)) {
			lines = append(lines, "+ "+strings.TrimSuffix(line, "\n"))
		}
		return lines, nil
	}
	before = compared(before)
	d := &difference{}
	d.compare("", state{before.Object, t.shown(before, fields)}, is)
	head := "changed: "
	if len(d.lines) == 0 {
		head = "unchanged: "
	}
	return append([]string{head + s.String()}, d.lines...), nil
}

// compared returns a copy of an object without the fields that are not a part of a plan.
func compared(obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj = trimmed(obj)
	delete(obj.Object, "status")
	for _, field := range []string{"resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	return obj
}

// send applies the object of a step. The server refuses the request if the object is not in the state before. dryRun
// has no or one value.
func (t *Tools) send(
	ctx context.Context, one *plan, s *step, before *unstructured.Unstructured, dryRun ...string,
) (*unstructured.Unstructured, error) {
	obj := s.object.DeepCopy()
	if before != nil {
		obj.SetResourceVersion(before.GetResourceVersion())
	}
	// A new object has no fields of others. An object that was created since the plan must not lose its fields.
	force := one.force && before != nil
	return t.client(s).Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{
		FieldManager: manager, Force: force, DryRun: dryRun,
	})
}

// fieldConflict adds the remedy to a conflict with other managers.
func fieldConflict(err error) error {
	if ownedByOthers(err) {
		return fmt.Errorf("%w: leave these fields out, or plan with force to take them over", err)
	}
	return err
}

// ownedByOthers reports whether an error is a conflict with the fields of other managers, and not with another write.
func ownedByOthers(err error) bool {
	return apierrors.IsConflict(err) && apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}
