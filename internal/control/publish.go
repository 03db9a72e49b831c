package control

import (
	"log/slog"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// DefinitionsPrefix is where definitions live in the store.
const DefinitionsPrefix = "apiextensions.k8s.io/customresourcedefinitions"

// Publish makes the catalog follow the definitions in the view. The catalog is updated before the view shows the
// revision, so a client that waits for a definition's revision finds its kind served. Call it before the view loads.
func Publish(cat *catalog.Catalog, view *watchcache.View, log *slog.Logger) {
	view.Subscribe(func(events []*watchcache.Event) {
		var put []*catalog.Resource
		revision := int64(0)
		for _, ev := range events {
			if ev.Collection.Prefix() != DefinitionsPrefix {
				continue
			}
			revision = ev.Revision
			if ev = ev.Readable(); ev == nil {
				continue // it stays served as before; the view has logged that it is unreadable
			}
			entry := ev.Entry
			def, err := crd.DecodeWithoutSchemas(entry.JSON())
			if err != nil {
				log.Error("a stored definition cannot be read and is not served", "definition", entry.Name, "error",
					err)
				continue
			}
			key := catalog.GroupResource{Group: def.Spec.Group, Resource: def.Spec.Names.Plural}
			if r := cat.Snapshot().Resource(key.Group, key.Resource); r != nil && (!r.Custom() || r.Fixed) {
				continue // a definition does not affect a built-in kind
			}
			if ev.Type == watchcache.Deleted {
				log.Info("definition and its objects are deleted", "definition", entry.Name)
				// Earlier definitions are published first: they may have the same name, and Update removes before it
				// adds.
				if len(put) > 0 {
					cat.Update(revision, put, nil)
					put = nil
				}
				cat.Update(revision, nil, []catalog.GroupResource{key})
				continue
			}
			res, err := crd.Resource(def, entry.Revision, func() ([]byte, error) { return entry.Peek(), nil })
			if err != nil {
				log.Error("a stored definition cannot be served", "definition", entry.Name, "error", err)
				continue
			}
			crd.MarkSensitive(res, entry.JSON(), func() ([]byte, error) { return entry.Peek(), nil })
			keepVersions(res, cat.Snapshot().Resource(key.Group, key.Resource))
			giveWay(res, cat.Snapshot().Group(key.Group))
			put = append(put, res)
			if ev.Type == watchcache.Added && view.Revision() > 0 { // not for definitions loaded at the start
				log.Info("definition is made", "definition", entry.Name, "versions", len(def.Spec.Versions))
			}
		}
		if len(put) > 0 {
			cat.Update(revision, put, nil)
		}
	})
}

// keepVersions keeps the versions of a definition with an unchanged spec, with all values compiled from them.
func keepVersions(res, old *catalog.Resource) {
	if old == nil || old.Definition.UID != res.Definition.UID ||
		old.Definition.Generation != res.Definition.Generation || res.Definition.Generation == 0 {
		return
	}
	res.Versions, res.Storage = old.Versions, old.Storage
}

// giveWay removes the versions of a group that also serve built-in kinds.
func giveWay(res *catalog.Resource, group *catalog.Group) {
	if group == nil {
		return
	}
	group.Each(func(r *catalog.Resource) {
		if r.Custom() || !r.Served {
			return
		}
		for _, builtin := range r.Versions {
			if v := res.Version(builtin.Name); v != nil && v.Served && builtin.Served {
				v.Served = false
			}
		}
	})
}
