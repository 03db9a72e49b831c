package bowsprit

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// serveSnapshot streams all data, as of one moment, in etcd's format: what package backup asks for. Only administrators
// get here. A stream that fails is broken off, so that half a snapshot is not taken for a whole one.
func (p *process) serveSnapshot(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
	if r.Method != http.MethodGet {
		writeError(w, r,
			apierrors.NewGenericServerResponse(http.StatusMethodNotAllowed, r.Method, schema.GroupResource{}, "", "", 0,
				false))
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	written, err := p.store.Snapshot(r.Context(), w)
	switch {
	case err == nil:
		return
	case written == 0:
		w.Header().Del("Content-Type")
		writeError(w, r, err)
		return
	}
	p.log.Warn("a snapshot was broken off", "written", written, "error", err)
	panic(http.ErrAbortHandler)
}
