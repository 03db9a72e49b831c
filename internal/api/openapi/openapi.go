// Package openapi publishes the schemas of served resources: OpenAPI v3, lossless, one document for each group and
// version, and OpenAPI v2 ("Swagger"), lossy, one document for all.
//
// It is step 5a of a request: a response that is not an object, made only from the request's catalog.Snapshot. Handler
// serves /openapi/v3, /openapi/v3/api/v1, /openapi/v3/apis/<group>/<version>, similar documents for paths without
// objects, and /openapi/v2. The specification is Kubernetes' documents for custom resources; test/oracle/openapi
// compares.
//
// Documents are built on demand. The index of v3, which every kubectl reads, and ETags identify documents by their
// sources (the identity and revision of each definition), so they need no document. Documents are built on all CPUs,
// few at a time, and cached in compressed form, within a budget of bytes, as long as their hash is unchanged; Drop
// frees them.
//
// A Handler is safe for concurrent use. Responses depend only on the snapshot and the request, so replicas agree,
// including hashes.
package openapi

import (
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// Options of a Handler.
type Options struct {
	// Version of the API ("1.36"). Documents of built-in kinds bear it.
	Version string
	// KeepBytes bounds the cache of compressed documents; 0 means 16 MiB.
	KeepBytes int
	// WriteError writes err as a metav1.Status. Required.
	WriteError func(w http.ResponseWriter, r *http.Request, err error)
}

// Handler handles OpenAPI requests.
type Handler struct {
	options Options
	models  func() *models
	hashes  hashes
	cache   documentCache
	// building holds locks for building documents, because building takes much memory for a short time and no document
	// should be built twice: the first for the parts of v2, one of the others for a document of v3, by its name.
	building [3]sync.Mutex
	homes    map[string]string // of homesV2; guarded by building[0]
}

// New returns a handler with an empty cache.
func New(o Options) *Handler {
	if o.KeepBytes == 0 {
		o.KeepBytes = 16 << 20
	}
	return &Handler{options: o, models: sync.OnceValue(loadModels), cache: documentCache{limit: o.KeepBytes}}
}

// Drop empties the cache.
func (h *Handler) Drop() { h.cache.drop() }

// ServeHTTP responds to r from snap. A path without a version in snap gets a 404.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, snap *catalog.Snapshot) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.options.WriteError(w, r, generic(http.StatusMethodNotAllowed, r))
		return
	}
	switch path := strings.Trim(r.URL.Path, "/"); path {
	case "openapi/v2":
		h.serveV2(w, r, snap)
	case "openapi/v3":
		h.serveIndex(w, r, snap)
	default:
		h.serveV3(w, r, snap, strings.TrimPrefix(path, "openapi/v3/"))
	}
}

// lookup returns the group and version of a path of the index ("api/v1", "apis/<group>/<version>"), or nil.
func lookup(snap *catalog.Snapshot, path string) (*catalog.Group, *catalog.GroupVersion) {
	parts := strings.Split(path, "/")
	group, version := "", ""
	switch {
	case len(parts) == 2 && parts[0] == "api":
		version = parts[1]
	case len(parts) == 3 && parts[0] == "apis" && parts[1] != "":
		group, version = parts[1], parts[2]
	default:
		return nil, nil
	}
	g := snap.Group(group)
	if g == nil || g.Version(version) == nil {
		return nil, nil
	}
	return g, g.Version(version)
}

// indexPath is the inverse of lookup.
func indexPath(g *catalog.Group, gv *catalog.GroupVersion) string {
	if g.Name == "" {
		return "api/" + gv.Name
	}
	return "apis/" + g.Name + "/" + gv.Name
}

// generic returns the Status that clients derive from a bare status code.
func generic(code int, r *http.Request) error {
	return apierrors.NewGenericServerResponse(code, strings.ToLower(r.Method), schema.GroupResource{}, "", "", 0, false)
}
