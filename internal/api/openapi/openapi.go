// Package openapi publishes the schemas of what is served: OpenAPI v3, lossless, one document for each group and
// version, and OpenAPI v2 ("Swagger"), lossy, one document for all.
//
// It is step 5a of a request: an answer that is not an object, made from the catalog.Snapshot of the request alone.
// Handler answers /openapi/v3, /openapi/v3/api/v1, /openapi/v3/apis/<group>/<version>, the like for what is no object,
// and /openapi/v2. What Kubernetes publishes for custom resources is the specification; test/oracle/openapi compares.
//
// Nothing is built until a client asks for it. The index of v3, which every kubectl reads, and ETags name documents by
// what they are made from (the identity and revision of each definition), so they need no document at all. Documents
// are built on all processors, few at a time, and kept compressed within a budget of bytes as long as their hash is the
// same; Drop frees them.
//
// A Handler is safe for concurrent use. Answers depend on nothing but the snapshot and the request, so that replicas
// agree, hashes included.
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
	// KeepBytes bounds the compressed documents that are kept; 0 means 16 MiB.
	KeepBytes int
	// WriteError writes err as a metav1.Status. Required.
	WriteError func(w http.ResponseWriter, r *http.Request, err error)
}

// Handler answers OpenAPI requests.
type Handler struct {
	options Options
	models  func() *models
	hashes  hashes
	kept    kept
	// building are held while documents are built, because building takes much memory for a short time and no document
	// should be built twice: the first for the parts of v2, one of the others for a document of v3, by its name.
	building [3]sync.Mutex
	homes    map[string]string // of homesV2; guarded by building[0]
}

// New returns a handler that holds nothing yet.
func New(o Options) *Handler {
	if o.KeepBytes == 0 {
		o.KeepBytes = 16 << 20
	}
	return &Handler{options: o, models: sync.OnceValue(loadModels), kept: kept{limit: o.KeepBytes}}
}

// Drop frees the documents that are kept.
func (h *Handler) Drop() { h.kept.drop() }

// ServeHTTP answers r from snap. A path that names no version of snap gets 404.
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

// lookup returns what a path of the index ("api/v1", "apis/<group>/<version>") names, or nil.
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

// generic is the Status that clients make of a bare status code.
func generic(code int, r *http.Request) error {
	return apierrors.NewGenericServerResponse(code, strings.ToLower(r.Method), schema.GroupResource{}, "", "", 0, false)
}
