package extension

import (
	"context"
	"fmt"
	"net/http"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/rest"
	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/verb/primary"
)

// Part adds kinds to a server. It returns an error if one of them is invalid.
func Part(kinds []*Kind) (part.Part, error) {
	p := part.Part{Name: "extension"}
	connections := map[string]rest.Connection{}
	stored := map[string]*storedKind{}
	seen := map[string]bool{}
	for _, k := range kinds {
		r, err := k.Resource()
		if err != nil {
			return p, err
		}
		if seen[r.Qualified()] {
			return p, fmt.Errorf("there are two kinds %s", r.Qualified())
		}
		seen[r.Qualified()] = true
		if k.Storage != nil {
			stored[r.Prefix] = newStoredKind(k, r)
		}
		for name, path := range k.Paths {
			connections[r.Qualified()+"/"+name] = connection(path)
		}
	}
	p.Resources = func(_ *part.Host, resources []*catalog.Resource) []*catalog.Resource {
		for _, k := range kinds {
			if r, err := k.Resource(); err == nil { // it was checked above
				resources = append(resources, r)
			}
		}
		return resources
	}
	p.Handlers = func(*part.Host) part.Handlers {
		h := part.Handlers{Connections: connections, Primaries: map[string]primary.Store{}}
		for prefix, k := range stored {
			h.Primaries[prefix] = k
		}
		return h
	}
	if len(stored) > 0 {
		p.Start = func(ctx context.Context, h *part.Host) error {
			for _, k := range stored {
				if err := k.start(ctx, h); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return p, nil
}

// connection serves a subresource by a function.
func connection(p Path) rest.Connection {
	return rest.Connection{Serve: func(w http.ResponseWriter, r *http.Request, v *verb.Verbs, c *verb.Call, _ any,
	) error {
		whole := c.Under("")
		e, err := v.Get(r.Context(), whole, "")
		if err != nil {
			return err
		}
		obj, err := v.Object(whole, e)
		if err != nil {
			return err
		}
		return p.Serve(r.Context(), obj, w, r)
	}}
}
