package bowsprit

import (
	"net/http"
	"net/http/pprof"
	"runtime"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/serviceaccount"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/front/pages"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/backup"
)

// pages are the paths that are about no resource, beside those that package front has itself.
func (p *process) pages(started time.Time, tokens *serviceaccount.Tokens, keysURI string) map[string]front.Handler {
	handlers := map[string]front.Handler{
		"/debug/pprof/": serveProfile,
		backup.Path:     p.serveSnapshot,
		serviceaccount.ConfigurationPath: serveDocument("application/json",
			func() []byte { return tokens.Configuration(keysURI) }),
		serviceaccount.KeysPath: serveDocument("application/jwk-set+json", tokens.KeySet),
	}
	status := pages.Status{
		Started: started, Now: time.Now, Go: runtime.Version(),
		Binary: strings.TrimPrefix(front.VersionInfo(build()).GitVersion, "v"), Emulation: front.API,
		Paths: []string{"/healthz", "/livez", "/metrics", "/readyz", pages.StatusPath, "/version"},
	}
	if p.config.Flags != nil {
		handlers[pages.FlagsPath] = serveAlike(pages.Flags(p.config.Flags).Serve)
		status.Paths = append([]string{pages.FlagsPath}, status.Paths...)
	}
	handlers[pages.StatusPath] = serveAlike(status.Serve)
	return handlers
}

// build says which Bowsprit this is.
func build() front.Build { return front.Build{Version: strings.TrimPrefix(Version().Bowsprit, "v")} }

// serveAlike answers everybody alike.
func serveAlike(serve http.HandlerFunc) front.Handler {
	return func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) { serve(w, r) }
}

// serveDocument serves what other programs read to prove the tokens of service accounts. They may keep it for an hour.
func serveDocument(contentType string, document func() []byte) front.Handler {
	return func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			writeError(w, r,
				apierrors.NewGenericServerResponse(http.StatusMethodNotAllowed, r.Method, schema.GroupResource{}, "",
					"", 0, false))
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "public, max-age=3600")
		_, _ = w.Write(document())
	}
}

// serveProfile shows where the process spends time and memory, to administrators, as kube-apiserver does.
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
