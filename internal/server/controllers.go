package server

import (
	"context"
	"os"

	"github.com/google/uuid"

	"github.com/bowsprit/bowsprit/internal/control"
)

// buildControllers has the controllers of the core and of parts listen to the view.
func (b *built) buildControllers(context.Context) error {
	c, h := &b.config, &b.host
	b.control = control.New(control.Config{
		Verbs: h.Verbs, View: h.View, Catalog: h.Catalog, Now: h.Now, Log: b.log,
		Runs: h.Runs, Identity: b.identity(),
		MigrateStorage: c.Versions.MigrateStorage,
		AfterFunc:      h.AfterFunc,
		Contents:       b.contents(), Remote: b.remote(), NamespaceGrace: c.Aggregation.NamespaceGrace,
	})
	h.Working = b.control.Check
	for _, one := range b.parts {
		for _, l := range one.Loops {
			if !l.Always && !h.Runs(l.Name) {
				continue
			}
			if work := l.New(h); work != nil {
				b.control.Add(control.Loop{
					Name: l.Name, Work: work, Workers: l.Workers, Pooled: l.Pooled, Election: l.Election,
				})
			}
		}
	}
	return nil
}

// contents returns the contents of namespaces on other servers, or nil.
func (b *built) contents() control.Contents {
	for _, one := range b.parts {
		if one.Contents != nil {
			return one.Contents(&b.host)
		}
	}
	return nil
}

// remote returns the other servers, or nil.
func (b *built) remote() control.Remote {
	for _, one := range b.parts {
		if one.Remote != nil {
			return one.Remote(&b.host)
		}
	}
	return nil
}

// identity returns the name of this replica in the election for running controllers, in the form of Kubernetes'
// components. With an embedded etcd it is "", because there are no other replicas.
func (b *built) identity() string {
	if len(b.config.Etcd.Servers) == 0 {
		return ""
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "_" + uuid.NewString()
}
