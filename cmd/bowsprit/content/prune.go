package content

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
)

// pruner deletes the objects of a set that an import does not have.
type pruner struct {
	set       string
	dryRun    bool
	imported  map[types.UID]bool
	resources []connect.Resource
	clients   metadata.Interface
}

// surplus is an object of the set that the import does not have. Keep is the reason to keep it, or "".
type surplus struct {
	resource connect.Resource
	obj      *metav1.PartialObjectMetadata
	keep     string
}

func newPruner(config *rest.Config, flags *importFlags, imported map[types.UID]bool) (*pruner, error) {
	p := &pruner{set: flags.set, dryRun: flags.dryRun, imported: imported}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	if p.resources, err = connect.Resources(d); err != nil {
		return nil, err
	}
	p.clients, err = metadata.NewForConfig(config)
	return p, err
}

// find returns the surplus objects in the order of their deletion: definitions after their objects. It fails if it
// cannot list a resource, since the result may lack objects then.
func (p *pruner) find(ctx context.Context) (all []surplus, err error) {
	seen := map[types.UID]bool{}
	for _, r := range p.resources {
		if !slices.Contains(r.Verbs, "delete") {
			continue
		}
		err := p.each(ctx, r, setLabel+"="+p.set, func(obj *metav1.PartialObjectMetadata) {
			if !p.imported[obj.UID] && !seen[obj.UID] && obj.DeletionTimestamp == nil {
				seen[obj.UID] = true
				all = append(all, surplus{resource: r, obj: obj})
			}
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.GroupResource(), err)
		}
	}
	for i := range all {
		if err := p.judge(ctx, &all[i], seen); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b surplus) int { return b.rank() - a.rank() })
	return all, nil
}

func (s *surplus) rank() int {
	return rank(schema.GroupKind{Group: s.resource.Group, Kind: s.resource.Kind})
}

// judge decides whether to keep an object. surplus has the uids of all surplus objects.
func (p *pruner) judge(ctx context.Context, s *surplus, surplus map[types.UID]bool) error {
	switch {
	case setOf(s.obj) == "":
		s.keep = "another client has set its label " + setLabel
	case s.rank() == namespaces:
		s.keep = "it may contain objects of others: delete it yourself"
	case s.rank() == definitions:
		return p.judgeDefinition(ctx, s, surplus)
	}
	return nil
}

// judgeDefinition keeps a definition with objects that are not pruned: its deletion deletes all of them.
func (p *pruner) judgeDefinition(ctx context.Context, s *surplus, surplus map[types.UID]bool) error {
	i := slices.IndexFunc(p.resources, func(r connect.Resource) bool {
		return r.GroupResource().String() == s.obj.Name
	})
	if i < 0 {
		s.keep = "the server does not serve it, so its objects cannot be counted: delete it yourself"
		return nil
	}
	count := 0
	err := p.each(ctx, p.resources[i], "", func(obj *metav1.PartialObjectMetadata) {
		if !surplus[obj.UID] || setOf(obj) == "" {
			count++
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w", s.obj.Name, err)
	}
	if count > 0 {
		s.keep = fmt.Sprintf("%d objects of its kind are not pruned", count)
	}
	return nil
}

// each calls f for each object of a resource in all namespaces.
func (p *pruner) each(
	ctx context.Context, r connect.Resource, selector string, f func(*metav1.PartialObjectMetadata),
) error {
	pages := pager.New(pager.SimplePageFunc(func(o metav1.ListOptions) (runtime.Object, error) {
		return p.clients.Resource(r.GroupVersionResource).List(ctx, o)
	}))
	return pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: selector}, func(item runtime.Object) error {
		obj, ok := item.(*metav1.PartialObjectMetadata)
		if !ok {
			return fmt.Errorf("the list has a %T", item)
		}
		f(obj)
		return nil
	})
}

// delete deletes an object in the state in which it was found.
func (p *pruner) delete(ctx context.Context, s *surplus) error {
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{
		PropagationPolicy: &background,
		Preconditions:     &metav1.Preconditions{UID: &s.obj.UID, ResourceVersion: &s.obj.ResourceVersion},
	}
	if p.dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	var client metadata.ResourceInterface = p.clients.Resource(s.resource.GroupVersionResource)
	if s.resource.Namespaced {
		client = p.clients.Resource(s.resource.GroupVersionResource).Namespace(s.obj.Namespace)
	}
	err := client.Delete(ctx, s.obj.Name, options)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil // the garbage collector was first
	}
	return err
}

// prune deletes the surplus objects of the set, if the whole import succeeded. imported has the applied objects.
func (r *importResult) prune(
	ctx context.Context, config *rest.Config, flags *importFlags, imported map[types.UID]bool,
) {
	refuse := func(err error) {
		r.Failed++
		r.failures = append(r.failures, fmt.Errorf("nothing was pruned: %w", err))
	}
	if r.Failed > 0 {
		refuse(errors.New("a part of the import failed, so the set may lack objects that belong to it"))
		return
	}
	p, err := newPruner(config, flags, imported)
	if err != nil {
		refuse(err)
		return
	}
	all, err := p.find(ctx)
	if err != nil {
		refuse(err)
		return
	}
	for i := range all {
		s := &all[i]
		one := applied{
			APIVersion: s.resource.GroupVersion().String(), Kind: s.resource.Kind, Namespace: s.obj.Namespace,
			Name: s.obj.Name,
		}
		if s.keep != "" {
			one.Reason = s.keep
			r.record(one, retained, nil)
			continue
		}
		if err := p.delete(ctx, s); err != nil {
			r.record(one, failed, fmt.Errorf("delete: %w", err))
			continue
		}
		r.record(one, pruned, nil)
	}
}
