package openapi

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// format is part of every hash. Raise it when the document of an unchanged definition changes, because clients cache
// documents as long as the hash is the same.
const format = "5"

// hashes caches the hash of each version's document, with the stamp of its group.
type hashes struct {
	mu     sync.Mutex
	groups map[string]groupHashes
}

type groupHashes struct {
	stamp    uint64
	versions map[string]string
}

// of returns the hashes of g's documents by version, "" for unknown documents of another server.
func (h *hashes) of(g *catalog.Group, serverVersion string) (map[string]string, error) {
	h.mu.Lock()
	known, ok := h.groups[g.Name]
	h.mu.Unlock()
	if ok && known.stamp == g.Stamp {
		return known.versions, nil
	}
	made := groupHashes{stamp: g.Stamp, versions: map[string]string{}}
	for _, gv := range g.Versions {
		if gv.Remote != nil {
			made.versions[gv.Name] = gv.Remote.V3.Hash
			continue
		}
		sum := sha512.New()
		fmt.Fprintf(sum, "%s\n%s\n%s/%s\n", format, serverVersion, g.Name, gv.Name)
		for _, r := range gv.Resources {
			if err := identify(sum, r, r.Version(gv.Name)); err != nil {
				return nil, err
			}
		}
		made.versions[gv.Name] = fmt.Sprintf("%X", sum.Sum(nil))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.groups == nil {
		h.groups = map[string]groupHashes{}
	}
	if h.groups[g.Name].stamp < made.stamp {
		h.groups[g.Name] = made
	}
	return made.versions, nil
}

// identify writes the identity of r's document in v to w: for a custom kind the definition's uid and revision, for a
// built-in kind its content.
func identify(w io.Writer, r *catalog.Resource, v *catalog.Version) error {
	fmt.Fprintf(w, "%s %s %s %s\n", r.Plural, r.Kind, r.Definition.UID, fmt.Sprint(r.Definition.Revision))
	if r.Custom() || v.Source == nil {
		return nil
	}
	props, err := v.Source()
	if err != nil {
		return fmt.Errorf("schema of %s in version %s: %w", r.Qualified(), v.Name, err)
	}
	return json.NewEncoder(w).Encode(props)
}

// forget drops the hashes of groups that snap does not have.
func (h *hashes) forget(snap *catalog.Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name := range h.groups {
		if snap.Group(name) == nil {
			delete(h.groups, name)
		}
	}
}
