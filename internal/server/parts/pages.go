package parts

import (
	"context"
	"io"
	"net/http"
	"net/http/pprof"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/front/figures"
	"github.com/bowsprit/bowsprit/internal/front/pages"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/server/version"
	"github.com/bowsprit/bowsprit/internal/storage/backup"
)

// serverMetrics brings the metrics of how much is stored, and which server this is.
func serverMetrics(c *config.Config) part.Part {
	return part.Part{Name: "server metrics", Collectors: func(h *part.Host) []prometheus.Collector {
		return append(figures.Build(version.OfServer(config.Emulated(&c.Emulation)), gates(c)),
			figures.StoredObjects{Catalog: h.Catalog, View: h.View, Size: h.Store.Size})
	}}
}

// gates returns the feature gates of Kubernetes that the configuration can switch.
func gates(c *config.Config) []figures.Gate {
	has := func(feature string) bool { return config.Emulated(&c.Emulation).Has(feature, c.API.Features) }
	return []figures.Gate{
		{Name: "AllowUnsafeMalformedObjectDeletion", Stage: "ALPHA", Enabled: c.API.UnsafeMalformedObjectDeletion},
		{Name: "CBORServingAndStorage", Stage: "ALPHA", Enabled: c.API.CBOR},
		{Name: "ClusterTrustBundle", Stage: "BETA", Enabled: has("ClusterTrustBundle")},
		{Name: "CoordinatedLeaderElection", Stage: "BETA", Enabled: c.API.CoordinatedLeaderElection},
		{Name: "PodCertificateRequest", Stage: "BETA", Enabled: has("PodCertificateRequest")},
	}
}

// statusPages brings /statusz, and /flagz if there are flags.
func statusPages(flags map[string]string, emulation front.Emulation) part.Part {
	return part.Part{Name: "status pages", Pages: func(h *part.Host) map[string]front.Handler {
		status := pages.Status{
			Started: h.Started, Now: h.Now, Go: runtime.Version(),
			Binary:    strings.TrimPrefix(front.VersionInfo(version.Build(), emulation).GitVersion, "v"),
			Emulation: emulation.Version,
			Paths:     []string{"/healthz", "/livez", "/metrics", "/readyz", pages.StatusPath, "/version"},
		}
		handlers := map[string]front.Handler{}
		if flags != nil {
			handlers[pages.FlagsPath] = forAll(pages.Flags(flags).Serve)
			status.Paths = append([]string{pages.FlagsPath}, status.Paths...)
		}
		handlers[pages.StatusPath] = forAll(status.Serve)
		return handlers
	}}
}

// forAll gives every user the same answer.
func forAll(serve http.HandlerFunc) front.Handler {
	return func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) { serve(w, r) }
}

// profiles brings the pages that show where the process spends time and memory, as kube-apiserver does.
//
// Contention is measured by the process as a whole, from then on.
func profiles(c *config.Observability) part.Part {
	return part.Part{Name: "profiles", Pages: func(*part.Host) map[string]front.Handler {
		if !*c.Profiling {
			return nil
		}
		if c.ContentionProfiling {
			runtime.SetBlockProfileRate(1)
			runtime.SetMutexProfileFraction(1)
		}
		handlers := map[string]front.Handler{"/debug/pprof/": serveProfile}
		if c.Verbosity != nil {
			handlers["/debug/flags/v"] = forAll(setVerbosity(c.Verbosity))
		}
		return handlers
	}}
}

// setVerbosity answers with kube-apiserver's texts, because its operators rely on them.
func setVerbosity(set func(v int)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer := func(code int, text string) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, text+"\n")
		}
		if r.Method != http.MethodPut {
			answer(http.StatusNotAcceptable, "unsupported http method")
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, 100))
		if err != nil {
			answer(http.StatusBadRequest, "error reading request body: "+err.Error())
			return
		}
		v, err := strconv.ParseUint(string(body), 10, 31)
		if err != nil {
			answer(http.StatusBadRequest, err.Error())
			return
		}
		set(int(v))
		answer(http.StatusOK, "successfully set klog.logging.verbosity to "+string(body))
	}
}

func serveProfile(w http.ResponseWriter, r *http.Request, info *request.Info, _ user.Info) {
	switch info.Path {
	case "/debug/pprof/cmdline":
		pprof.Cmdline(w, r)
	case "/debug/pprof/profile":
		pprof.Profile(w, r)
	case "/debug/pprof/symbol":
		pprof.Symbol(w, r)
	case "/debug/pprof/trace":
		pprof.Trace(w, r)
	default:
		pprof.Index(w, r)
	}
}

func methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	codec.WriteError(w, r,
		apierrors.NewGenericServerResponse(http.StatusMethodNotAllowed, r.Method, schema.GroupResource{}, "", "", 0,
			false))
}

// snapshots adds a stream of all data at one moment, in etcd's format, which package backup requests. It contains
// everything, so the permission for the path is not enough: a role for all paths may be meant for metrics. A failing
// stream is aborted, so that clients notice an incomplete snapshot.
func snapshots() part.Part {
	return part.Part{Name: "snapshots", Pages: func(h *part.Host) map[string]front.Handler {
		return map[string]front.Handler{backup.Path: func(w http.ResponseWriter, r *http.Request, _ *request.Info,
			u user.Info) {
			if r.Method != http.MethodGet {
				methodNotAllowed(w, r)
				return
			}
			if err := mayReadAll(r.Context(), h.Authorizer, u); err != nil {
				codec.WriteError(w, r, err)
				return
			}
			w.Header().Set("Content-Type", "application/octet-stream")
			written, err := h.Store.Snapshot(r.Context(), pages.Patient{To: w, Patience: snapshotPatience})
			switch {
			case err == nil:
				return
			case written == 0:
				w.Header().Del("Content-Type")
				codec.WriteError(w, r, err)
				return
			}
			h.Log.Warn("a snapshot was broken off", "written", written, "error", err)
			panic(http.ErrAbortHandler)
		}}
	}}
}

// snapshotPatience is how long a client may take to read a piece of a snapshot.
const snapshotPatience = time.Minute

// mayReadAll returns a 403 unless the user may get every object of every kind.
func mayReadAll(ctx context.Context, a authz.Authorizer, u user.Info) error {
	return authz.Require(ctx, a, u,
		&request.Info{IsResource: true, Verb: "get", Group: "*", Version: "*", Resource: "*"})
}
