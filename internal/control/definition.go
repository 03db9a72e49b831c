package control

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// definitions deletes the objects of deleted definitions, removes the definitions when no object is left, and gives
// waiting definitions the names that become free.
type definitions struct {
	Config
	// Fields of the view's goroutine: the collections of deleted definitions, and definitions waiting for a name, by
	// group.
	dying   map[string]string // collection prefix -> definition
	waiting map[string]map[string]bool
}

func newDefinitions(c Config) *definitions {
	return &definitions{Config: c, dying: map[string]string{}, waiting: map[string]map[string]bool{}}
}

var definitionsResource = catalog.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

func (d *definitions) Observe(ev *watchcache.Event, need func(string)) {
	if ev.Collection.Prefix() != DefinitionsPrefix {
		if name := d.dying[ev.Collection.Prefix()]; name != "" && ev.Type == watchcache.Deleted &&
			ev.Collection.Snapshot().Len() == 0 {
			need(name)
		}
		return
	}
	def, err := crd.DecodeWithoutSchemas(ev.Entry.JSON())
	if err != nil {
		return // Publish has logged it
	}
	prefix, group := def.Spec.Group+"/"+def.Spec.Names.Plural, def.Spec.Group
	delete(d.waiting[group], def.Name)
	if len(d.waiting[group]) == 0 {
		delete(d.waiting, group)
	}
	switch {
	case ev.Type == watchcache.Deleted:
		delete(d.dying, prefix)
	case ev.Entry.Deleting:
		d.dying[prefix] = def.Name
		need(def.Name)
	case !settled(def):
		if d.waiting[group] == nil {
			d.waiting[group] = map[string]bool{}
		}
		d.waiting[group][def.Name] = true
		if len(def.Status.Conditions) == 0 { // another program has written it, bypassing the API
			need(def.Name)
		}
	}
	if ev.Type != watchcache.Added { // names may have become free
		for name := range d.waiting[group] {
			need(name)
		}
	}
}

func (d *definitions) Reconcile(ctx context.Context, name string) error {
	entry := d.View.Collection(DefinitionsPrefix).Snapshot().Get("", name)
	if entry == nil {
		return nil
	}
	def, err := crd.DecodeWithoutSchemas(entry.JSON())
	if err != nil {
		return err
	}
	if entry.Deleting {
		return d.bury(ctx, def)
	}
	return d.update(ctx, name, func(obj object.Object) error {
		_, err := crd.Refresh(obj, d.claims(def), d.Now())
		return err
	})
}

// claims returns the names that the group's other definitions hold.
func (d *definitions) claims(def *apiextensionsv1.CustomResourceDefinition) []crd.Claim {
	return crd.Claims(d.Catalog.Snapshot(), def.Spec.Group, def.Name)
}

// bury deletes all objects of a definition and then, when they are gone, its finalizer.
func (d *definitions) bury(ctx context.Context, def *apiextensionsv1.CustomResourceDefinition) error {
	if !holdsObjects(def) {
		return nil // other finalizers belong to other controllers
	}
	// As in Kubernetes, set the condition before the work begins: clients that wait for it see it even if there is
	// little to do.
	if err := d.update(ctx, def.Name,
		func(obj object.Object) error {
			crd.SetDeletion(obj, crd.DeletionInProgress, d.Now())
			return nil
		}); err != nil {
		return err
	}
	gr := catalog.GroupResource{Group: def.Spec.Group, Resource: def.Spec.Names.Plural}
	res := d.Catalog.Snapshot().Resource(gr.Group, gr.Resource)
	stage := crd.DeletionCompleted
	if !established(def) {
		stage = crd.DeletionNeverEstablished
	} else if res != nil && res.Custom() && !res.Fixed { // a built-in kind does not belong to the definition
		call, err := d.Verbs.Call(gr, "", "", verb.ServerUser())
		if err != nil {
			return err
		}
		if err := d.Verbs.DeleteCollection(ctx, call, metav1.DeleteOptions{}); err != nil {
			_ = d.update(ctx, def.Name,
				func(obj object.Object) error { crd.SetDeletion(obj, crd.DeletionFailed(err), d.Now()); return nil })
			return fmt.Errorf("delete the objects of %s: %w", def.Name, err)
		}
		if _, err := d.View.Fresh(ctx); err != nil {
			return err
		}
		if d.View.Collection(res.Prefix).Snapshot().Len() > 0 {
			stage = crd.DeletionInProgress // finalizers hold them; the removal of the last object triggers the next run
		}
	}
	if stage != crd.DeletionInProgress && lingers(def, d.Now()) {
		return Again(shownFor / 2)
	}
	return d.update(ctx, def.Name, func(obj object.Object) error { crd.SetDeletion(obj, stage, d.Now()); return nil })
}

func (d *definitions) update(ctx context.Context, name string, change func(object.Object) error) error {
	call, err := d.Verbs.Call(definitionsResource, "", name, verb.ServerUser())
	if err != nil {
		return err
	}
	call = call.Under("status")
	_, err = d.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: "kube-apiserver"},
		func(obj object.Object) (object.Object, error) {
			return obj, change(obj)
		})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
