package front

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// Check is a health check.
type Check struct {
	Name string
	// nil means healthy; the error is shown only to users with access to the check's own path
	Run       func(ctx context.Context) error
	ReadyOnly bool // only for readyz, not for livez and healthz
	NotLive   bool // only for readyz and healthz, not for livez
}

// checks returns the checks of an endpoint: livez, readyz or healthz.
func (s *Server) checks(endpoint string) []Check {
	checks := []Check{{Name: "ping", Run: func(context.Context) error { return nil }}}
	for _, c := range s.config.Checks {
		if endpoint == "readyz" || !c.ReadyOnly && !(c.NotLive && endpoint == "livez") {
			checks = append(checks, c)
		}
	}
	if endpoint == "readyz" {
		checks = append(checks, Check{Name: "shutdown", Run: func(context.Context) error {
			if s.chain.Closed() {
				return errors.New("process is shutting down")
			}
			return nil
		}})
	}
	return checks
}

// serveHealth serves one endpoint and its single checks below it, in Kubernetes' plain text. Probes of load balancers
// and kubelets read the code, people the text.
func (s *Server) serveHealth(endpoint string) Handler {
	checks := s.checks(endpoint)
	return func(w http.ResponseWriter, r *http.Request, info *request.Info, _ user.Info) {
		name, below := strings.CutPrefix(strings.TrimPrefix(info.Path, "/"+endpoint), "/")
		if !below {
			s.serveChecks(w, r, endpoint, checks)
			return
		}
		i := slices.IndexFunc(checks, func(c Check) bool { return c.Name == name })
		if i < 0 {
			http.NotFound(w, r) // in plain text, as in Kubernetes: its own tests compare it
			return
		}
		if err := checks[i].Run(r.Context()); err != nil {
			http.Error(w, fmt.Sprintf("internal server error: %v", err), http.StatusInternalServerError)
			return
		}
		writePlain(w, []byte("ok"))
	}
}

// serveChecks runs all checks except the excluded ones. The reason of a failure is only logged, since any client may
// access the endpoint.
func (s *Server) serveChecks(w http.ResponseWriter, r *http.Request, endpoint string, checks []Check) {
	query := r.URL.Query()
	excluded := query["exclude"]
	var report bytes.Buffer
	healthy := true
	for _, c := range checks {
		if slices.Contains(excluded, c.Name) {
			fmt.Fprintf(&report, "[+]%s excluded: ok\n", c.Name)
			continue
		}
		err := c.Run(r.Context())
		s.slis.observe(c.Name, endpoint, err)
		if err != nil {
			healthy = false
			fmt.Fprintf(&report, "[-]%s failed: reason withheld\n", c.Name)
			s.config.Log.Warn("health check failed", "endpoint", endpoint, "check", c.Name, "error", err)
			continue
		}
		fmt.Fprintf(&report, "[+]%s ok\n", c.Name)
	}
	if unknown := unknownChecks(excluded, checks); unknown != "" {
		fmt.Fprintf(&report, "warn: some health checks cannot be excluded: no matches for %s\n", unknown)
	}
	_, verbose := query["verbose"]
	switch {
	case !healthy:
		http.Error(w, fmt.Sprintf("%s%s check failed", report.String(), endpoint), http.StatusInternalServerError)
	case verbose:
		fmt.Fprintf(&report, "%s check passed\n", endpoint)
		writePlain(w, report.Bytes())
	default:
		writePlain(w, []byte("ok"))
	}
}

// unknownChecks returns the excluded names that no check has, quoted and sorted, as Kubernetes prints them.
func unknownChecks(excluded []string, checks []Check) string {
	var unknown []string
	for _, name := range excluded {
		if !slices.ContainsFunc(checks, func(c Check) bool { return c.Name == name }) {
			unknown = append(unknown, fmt.Sprintf("%q", name))
		}
	}
	slices.Sort(unknown)
	return strings.Join(slices.Compact(unknown), ",")
}

func writePlain(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(body)
}
