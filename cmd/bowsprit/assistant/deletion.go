package assistant

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/assistant/answer"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
)

// planDeleteInput are the parameters of plan_delete.
type planDeleteInput struct {
	Objects []objectInput `json:"objects" jsonschema:"the objects to delete, at most 20"`
	Size
}

func (t *Tools) planDelete(ctx context.Context, in *planDeleteInput) (*answer.Answer, error) {
	if len(in.Objects) == 0 || len(in.Objects) > maxObjects {
		return nil, fmt.Errorf("a plan deletes 1 to %d objects, not %d", maxObjects, len(in.Objects))
	}
	one := &plan{action: deletes}
	ans := &answer.Answer{}
	for i := range in.Objects {
		s, err := t.tryDelete(ctx, &in.Objects[i])
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", in.Objects[i].Kind, in.Objects[i].Name, err)
		}
		one.steps = append(one.steps, *s)
		ans.Text("deleted: " + s.String() + ", which is " + age(partial(s.object), t.now()) + " old")
		for _, line := range t.consequences(ctx, s) {
			ans.Text("  " + line)
		}
	}
	ans.Field("objects", "%d; the garbage collector also deletes objects that only they own", len(one.steps))
	if !t.options.AllowApply || !t.options.AllowDelete {
		ans.Field("plan", "none, because the program was started without --allow-apply and --allow-delete; nothing was deleted")
		return ans, nil
	}
	name, err := t.keep(ctx, one)
	if err != nil {
		return nil, err
	}
	ans.Field("plan", "%s, for the tool delete, once, until %s; nothing was deleted", name,
		one.expires.UTC().Format("15:04:05"))
	return ans, nil
}

// tryDelete sends a deletion as a dry run.
func (t *Tools) tryDelete(ctx context.Context, in *objectInput) (*step, error) {
	r, _, client, err := t.object(in)
	if err != nil {
		return nil, err
	}
	if in.Name == "" {
		return nil, errors.New("the name is missing")
	}
	obj, err := client.Get(ctx, in.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	s := &step{resource: r, object: obj}
	if s.before, err = content(obj); err != nil {
		return nil, err
	}
	return s, t.remove(ctx, s, obj, metav1.DryRunAll)
}

func partial(obj *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: obj.GetCreationTimestamp()}}
}

// consequences returns lines about a deletion: the finalizers that delay it, and the number of the objects that go with
// a namespace or a definition.
func (t *Tools) consequences(ctx context.Context, s *step) (lines []string) {
	if f := s.object.GetFinalizers(); len(f) > 0 {
		lines = append(lines, "it remains until its finalizers are removed: "+strings.Join(f, ", "))
	}
	switch r := s.resource.GroupResource(); r {
	case schema.GroupResource{Resource: "namespaces"}:
		return append(lines, t.namespaceContent(ctx, s.object.GetName())...)
	case schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}:
		group, _, _ := unstructured.NestedString(s.object.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(s.object.Object, "spec", "names", "plural")
		kind, err := connect.Named(t.discovery, plural+"."+group)
		if err != nil {
			return append(lines, "its objects cannot be counted: "+err.Error())
		}
		return append(lines, t.count(ctx, kind, "")...)
	}
	return lines
}

// namespaceContent returns a line for each kind with objects in a namespace.
func (t *Tools) namespaceContent(ctx context.Context, namespace string) (lines []string) {
	all, err := connect.Resources(t.discovery)
	if err != nil {
		lines = append(lines, "some kinds are missing: "+err.Error())
	}
	for i := range all {
		if r := &all[i]; r.Namespaced && r.Group != "events.k8s.io" { // the core has the same objects
			lines = append(lines, t.count(ctx, r, namespace)...)
		}
	}
	return lines
}

// count returns a line with the number of objects of a kind, or nothing if there are none. namespace may be "" for all.
func (t *Tools) count(ctx context.Context, r *connect.Resource, namespace string) []string {
	list, err := t.objects.Resource(r.GroupVersionResource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	switch {
	case err != nil:
		return []string{"its " + title(r) + " cannot be counted: " + err.Error()}
	case len(list.Items) == 0:
		return nil
	case list.GetContinue() != "" && list.GetRemainingItemCount() == nil:
		return []string{"with several " + title(r)}
	}
	n := int64(len(list.Items))
	if rest := list.GetRemainingItemCount(); rest != nil {
		n += *rest
	}
	return []string{fmt.Sprintf("with %d %s", n, title(r))}
}
