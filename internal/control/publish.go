package control

import (
	"log/slog"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// DefinitionsPrefix is where definitions live in the store.
const DefinitionsPrefix = "apiextensions.k8s.io/customresourcedefinitions"

// Publish makes the catalog follow the definitions in the view. It happens before the view shows their revision, so who
// waits for a definition's revision finds its kind served. Call it before the view loads.
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
				continue // it is served as it was, if it was; the view has said that it cannot be read
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
				continue // a definition changes nothing about a kind that is built in
			}
			if ev.Type == watchcache.Deleted {
				log.Info("definition is gone, and its objects with it", "definition", entry.Name)
				// What comes before it is served first: the same name may be in it, and Update removes before it puts.
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
			if ev.Type == watchcache.Added && view.Revision() > 0 { // not those that are read at the start
				log.Info("definition is made", "definition", entry.Name, "versions", len(def.Spec.Versions))
			}
		}
		if len(put) > 0 {
			cat.Update(revision, put, nil)
		}
	})
}

// keepVersions lets a definition whose spec has not changed keep its versions, with all that was compiled from them.
func keepVersions(res, old *catalog.Resource) {
	if old == nil || old.Definition.UID != res.Definition.UID ||
		old.Definition.Generation != res.Definition.Generation || res.Definition.Generation == 0 {
		return
	}
	res.Versions, res.Storage = old.Versions, old.Storage
}

// giveWay leaves to built-in kinds the versions of a group in which they are served: there is nothing beside them.
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
