// Package discovery serves the lists of the server's groups, versions and resources.
//
// It is step 5a of a request: a response that is not an object, made only from the request's catalog.Snapshot. Handler
// serves /, /api, /apis, /apis/<group>, /api/v1 and /apis/<group>/<version>, and on /api and /apis also the aggregated
// form (apidiscovery.k8s.io, KEP-3352).
//
// Parts proportional to the whole catalog are cached as one fragment of bytes for each group, made on first use, valid
// while the group's Stamp is unchanged, and concatenated into the response: a changed group rebuilds only its own
// fragment. Parts of one group or version are made for each request.
//
// A Handler is safe for concurrent use. Responses depend only on the snapshot and the request, so replicas agree,
// including ETags.
package discovery

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// Options of a Handler.
type Options struct {
	// ServerAddress is the host:port that /api recommends to clients.
	ServerAddress string
	// WriteError writes err as a metav1.Status. Required.
	WriteError func(w http.ResponseWriter, r *http.Request, err error)
	// Peers holds the resources of other servers; nil shows only this server's.
	Peers *Peers
}

// Handler handles discovery requests.
type Handler struct {
	options Options
	cache   cache
}

// New returns a handler with an empty cache.
func New(o Options) *Handler { return &Handler{options: o} }

// ServeHTTP responds to r from snap. A path without a group or version in snap gets a 404.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, snap *catalog.Snapshot) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.options.WriteError(w, r, generic(http.StatusMethodNotAllowed, r))
		return
	}
	parts := strings.FieldsFunc(r.URL.Path, func(c rune) bool { return c == '/' })
	switch {
	case len(parts) == 1 && parts[0] == "api":
		h.serveAll(w, r, core(snap), func() answer { return answer{object: h.versions(snap)} })
	case len(parts) == 1 && parts[0] == "apis":
		h.serveAll(w, r, named(snap), func() answer {
			groups := byService(named(snap))
			return answer{json: h.cache.groupList(groups), object: groupList(groups)}
		})
	case len(parts) == 2 && parts[0] == "api":
		h.serveVersion(w, r, snap, "", parts[1])
	case len(parts) == 2 && parts[0] == "apis":
		h.serveGroup(w, r, snap, parts[1])
	case len(parts) == 3 && parts[0] == "apis":
		h.serveVersion(w, r, snap, parts[1], parts[2])
	default:
		h.options.WriteError(w, r, generic(http.StatusNotFound, r))
	}
}

// serveAll serves /api and /apis: aggregated if the client prefers that, otherwise the result of plain.
func (h *Handler) serveAll(w http.ResponseWriter, r *http.Request, groups []*catalog.Group, plain func() answer) {
	offered := codec.Offered(r.Context())
	m, ok := negotiate(r, offered, true)
	if !ok {
		h.options.WriteError(w, r, codec.NotAcceptable(offered...))
		return
	}
	if m.aggregated == "" {
		h.write(w, r, m, plain())
		return
	}
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Cache-Control", "public")
	etag := h.cache.etag(groups)
	all := h.everywhere(m, groups, etag)
	if all != nil {
		etag = all.etag
	}
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if all != nil {
		h.write(w, r, m, answer{json: all.json, object: func() object { return all.list }})
		return
	}
	h.write(w, r, m,
		answer{json: h.cache.aggregatedList(groups, m.aggregated), object: aggregatedList(groups, m.aggregated)})
}

func (h *Handler) serveGroup(w http.ResponseWriter, r *http.Request, snap *catalog.Snapshot, name string) {
	g := snap.Group(name)
	if g == nil || name == "" || len(g.Versions) == 0 {
		h.options.WriteError(w, r, generic(http.StatusNotFound, r))
		return
	}
	h.serve(w, r, codec.Offered(r.Context()), answer{object: func() object {
		o := apiGroup(g)
		o.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		return &o
	}})
}

func (h *Handler) serveVersion(w http.ResponseWriter, r *http.Request, snap *catalog.Snapshot, group, version string) {
	g := snap.Group(group)
	if g == nil || g.Version(version) == nil {
		h.options.WriteError(w, r, generic(http.StatusNotFound, r))
		return
	}
	offered := codec.Offered(r.Context())
	if v := g.Version(version); len(v.Resources) > 0 && v.Resources[0].Custom() {
		// As in Kubernetes, custom resources are not discovered in CBOR: client-go requests it and cannot read it here.
		offered = slices.DeleteFunc(offered, func(t string) bool { return t == codec.CBOR })
	}
	h.serve(w, r, offered, answer{object: func() object { return resourceList(g, g.Version(version)) }})
}

// serve serves a document without an aggregated form.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, offered []string, a answer) {
	m, ok := negotiate(r, offered, false)
	if !ok {
		h.options.WriteError(w, r, codec.NotAcceptable(offered...))
		return
	}
	h.write(w, r, m, a)
}

// everywhere returns the document of all servers, or nil to serve this server's. As in Kubernetes, each server serves
// the core group, which has no name, for itself.
func (h *Handler) everywhere(m media, groups []*catalog.Group, etag string) *merged {
	peers := h.options.Peers
	if peers == nil || m.aggregated != "v2" || len(groups) > 0 && groups[0].Name == "" {
		return nil
	}
	if m.noPeer {
		peers.noPeer.Inc()
		return nil
	}
	return peers.document(groups, etag)
}

// core returns the core group of snap, if it exists.
func core(snap *catalog.Snapshot) []*catalog.Group {
	if g := snap.Group(""); g != nil && len(g.Versions) > 0 {
		return []*catalog.Group{g}
	}
	return nil
}

// named returns all groups of snap but the core group, in discovery's order.
func named(snap *catalog.Snapshot) []*catalog.Group {
	groups := snap.Groups()
	out := groups[:0]
	for _, g := range groups {
		if g.Name != "" {
			out = append(out, g)
		}
	}
	return out
}

// byService orders groups of equal priority by the lowest name of their APIServices, like kube-apiserver's list of
// groups: v1.b.example.com comes before v1alpha1.a.example.com. It changes groups.
func byService(groups []*catalog.Group) []*catalog.Group {
	first := make(map[*catalog.Group]string, len(groups))
	for _, g := range groups {
		for _, v := range g.Versions {
			if name := v.Name + "." + g.Name; first[g] == "" || name < first[g] {
				first[g] = name
			}
		}
	}
	slices.SortStableFunc(groups, func(a, b *catalog.Group) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(first[a], first[b]))
	})
	return groups
}

// generic returns the Status that clients derive from kube-apiserver's bare status code.
func generic(code int, r *http.Request) error {
	return apierrors.NewGenericServerResponse(code, strings.ToLower(r.Method), schema.GroupResource{}, "", "", 0, false)
}
