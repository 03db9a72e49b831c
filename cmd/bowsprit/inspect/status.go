// Package inspect implements "bowsprit status": the identity, contents and load of a server at one moment.
package inspect

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

// status is the result for programs. It omits parts that the user may not read.
type status struct {
	Server  string `json:"server"`
	Version string `json:"version,omitempty"`
	Ready   bool   `json:"ready"`
	// Failing are the checks of /readyz that fail.
	Failing []string `json:"failing,omitempty"`
	// Certificate and ClientCertificate are the ends of the server's certificate and the user's.
	Certificate       *time.Time `json:"certificateEnds,omitempty"`
	ClientCertificate *time.Time `json:"clientCertificateEnds,omitempty"`
	Running           *figures   `json:"running,omitempty"`
	// Missing is the reason for missing figures.
	Missing string `json:"missing,omitempty"`
	// Error is the reason why the server cannot be reached.
	Error string `json:"error,omitempty"`
}

// figures are of the server's metrics.
type figures struct {
	Started           time.Time `json:"started"`
	MemoryBytes       int64     `json:"memoryBytes"`
	DatabaseBytes     int64     `json:"databaseBytes"`
	Objects           int64     `json:"objects"`
	Definitions       int64     `json:"definitions"`
	Watches           int64     `json:"watches"`
	RequestsPerSecond float64   `json:"requestsPerSecond"`
	// Leftovers counts deleted namespaces with objects that aggregated servers may still have, once for each group.
	Leftovers int64 `json:"namespaceLeftovers,omitempty"`
}

// Command returns "bowsprit status".
func Command() *cobra.Command {
	var server connect.Flags
	var form output.Form
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show a server: version, readiness, certificates, storage, objects, requests",
		Long: `Show the state of a server: version, readiness and failing checks, expiry of certificates, uptime, stored data, and
requests per second, counted over one second. The figures require permission to get /metrics.

If the server cannot be reached, -o json and -o yaml print a status with "ready": false and the error.`,
		Example: `  bowsprit status
  bowsprit status --kubeconfig prod.conf -o json`,
		Args: arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, err := server.Read(cmd)
			if from == nil {
				return err
			}
			var s *status
			if err == nil {
				s, err = look(cmd.Context(), from.Config, time.Second)
			}
			if err != nil {
				return unreachable(cmd.OutOrStdout(), form, connect.URL(from.Config), err)
			}
			return s.show(cmd.OutOrStdout(), form)
		},
	}
	form.Bind(cmd.Flags())
	server.Bind(cmd.Flags())
	return cmd
}

// unreachable returns err, the error of reaching a server. For programs it prints the status first.
func unreachable(out io.Writer, form output.Form, server string, err error) error {
	if !form.ForPrograms() {
		return err
	}
	if failed := form.Print(out, status{Server: server, Error: err.Error()}, nil); failed != nil {
		return failed
	}
	return err
}

// inquiry sends requests to one server.
type inquiry struct {
	http *http.Client
	url  string
}

// maxMetrics bounds the metrics of a server, in bytes. Other pages are documents (foreign.MaxDocument).
const maxMetrics = 64 << 20

// get returns the text of a page. Responses with other codes than the given ones are errors.
func (q *inquiry) get(ctx context.Context, path string, codes ...int) (*http.Response, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, q.url+path, http.NoBody)
	if err != nil {
		return nil, "", err
	}
	answer, err := q.http.Do(r)
	if err != nil {
		return nil, "", foreign.Error(err)
	}
	defer answer.Body.Close()
	limit := int64(foreign.MaxDocument)
	if path == "/metrics" {
		limit = maxMetrics
	}
	body, err := foreign.ReadAll(answer.Body, limit)
	if err == nil && !slices.Contains(codes, answer.StatusCode) {
		err = fmt.Errorf("GET %s: %s", path, foreign.Text(answer.Status))
	}
	return answer, string(body), err
}

// Of the failing checks, status shows at most maxFailing, with at most maxCheck bytes each.
const maxFailing, maxCheck = 100, 200

// look reads the state of a server. It waits for the time between its two readings of the counters.
func look(ctx context.Context, config *rest.Config, between time.Duration) (*status, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	q := &inquiry{client, strings.TrimSuffix(config.Host, "/")}
	answer, text, err := q.get(ctx, "/version", http.StatusOK)
	if err != nil {
		return nil, err
	}
	var version struct{ GitVersion string }
	if err := json.Unmarshal([]byte(text), &version); err != nil {
		return nil, fmt.Errorf("GET /version: %w", err)
	}
	s := &status{Server: q.url, Version: version.GitVersion, ClientCertificate: clientEnd(config)}
	if answer.TLS != nil && len(answer.TLS.PeerCertificates) > 0 {
		s.Certificate = &answer.TLS.PeerCertificates[0].NotAfter
	}
	_, text, err = q.get(ctx, "/readyz?verbose", http.StatusOK, http.StatusInternalServerError)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(text) {
		if check, failing := strings.CutPrefix(strings.TrimSpace(line), "[-]"); failing && len(s.Failing) < maxFailing {
			s.Failing = append(s.Failing, foreign.Cut(check, maxCheck))
		}
	}
	s.Ready = strings.Contains(text, "readyz check passed")
	if s.Running, err = q.figures(ctx, between); err != nil {
		s.Missing = err.Error()
	}
	return s, nil
}

// clientEnd returns the end of the user's certificate, or nil.
func clientEnd(config *rest.Config) *time.Time {
	text := config.CertData
	if len(text) == 0 && config.CertFile != "" {
		text, _ = os.ReadFile(config.CertFile)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return &certificate.NotAfter
}

// figures reads the metrics twice.
func (q *inquiry) figures(ctx context.Context, between time.Duration) (*figures, error) {
	_, first, err := q.get(ctx, "/metrics", http.StatusOK)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	select {
	case <-time.After(between):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	_, second, err := q.get(ctx, "/metrics", http.StatusOK)
	if err != nil {
		return nil, err
	}
	passed := time.Since(began).Seconds()
	was, is := sums(first), sums(second)
	seconds, part := math.Modf(is["process_start_time_seconds"])
	f := &figures{
		Started:       time.Unix(int64(seconds), int64(part*1e9)).UTC(),
		MemoryBytes:   int64(is["process_resident_memory_bytes"]),
		DatabaseBytes: int64(is["apiserver_storage_size_bytes"]),
		Objects:       int64(is["apiserver_resource_objects"]),
		Definitions:   int64(is[definitions]),
		Watches:       int64(is["apiserver_longrunning_requests"]),
		Leftovers:     int64(is["bowsprit_namespace_leftovers"]),
	}
	// One of the requests is the first reading of the metrics itself.
	answered := is["apiserver_request_total"] - was["apiserver_request_total"] - 1
	f.RequestsPerSecond = math.Round(max(0, answered)/passed*10) / 10
	return f, nil
}

// definitions is the key of sums for the number of definitions.
const definitions = "definitions"

// sums adds up the values of each metric in the text form of Prometheus.
func sums(text string) map[string]float64 {
	all := map[string]float64{}
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		end := strings.LastIndexByte(line, ' ')
		if end < 0 || line[0] == '#' {
			continue
		}
		value, err := strconv.ParseFloat(line[end+1:], 64)
		if err != nil {
			continue
		}
		name, labels, _ := strings.Cut(line[:end], "{")
		if name == "apiserver_longrunning_requests" && !strings.Contains(labels, `verb="WATCH"`) {
			continue
		}
		all[name] += value
		if name == "apiserver_resource_objects" && strings.Contains(labels, `resource="customresourcedefinitions"`) {
			all[definitions] += value
		}
	}
	return all
}

// errNotReady ends the command with the exit code of a failure.
var errNotReady = errors.New("the server is not ready")

// show writes the status.
func (s *status) show(out io.Writer, form output.Form) error {
	if err := form.Print(out, s, func(out io.Writer) error { return s.table(out, time.Now()) }); err != nil {
		return err
	}
	if !s.Ready {
		return errNotReady
	}
	return nil
}

// table writes a line for each part.
func (s *status) table(out io.Writer, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, name+"\t"+format+"\n", args...) }
	row("Server", "%s", s.Server)
	row("Version", "%s", s.Version)
	if s.Ready {
		row("Ready", "yes")
	} else {
		row("Ready", "no: %s", strings.Join(s.Failing, "; "))
	}
	if s.Certificate != nil {
		row("Certificate", "%s", until(*s.Certificate, now))
	}
	if s.ClientCertificate != nil {
		row("Your certificate", "%s", until(*s.ClientCertificate, now))
	}
	if f := s.Running; f != nil {
		row("Running", "since %s (%s)", f.Started.Format(time.RFC3339), now.Sub(f.Started).Round(time.Second))
		row("Memory", "%s", output.Size(f.MemoryBytes))
		row("Database", "%s", output.Size(f.DatabaseBytes))
		row("Objects", "%d, %d definitions", f.Objects, f.Definitions)
		row("Requests", "%.1f per second, %d watches", f.RequestsPerSecond, f.Watches)
		if f.Leftovers > 0 {
			row("Leftovers", "of %d deleted namespaces: kubectl get configmaps -n kube-system -l bowsprit.dev/leftovers",
				f.Leftovers)
		}
	} else {
		row("Figures", "none: %s", s.Missing)
	}
	return w.Flush()
}

// until returns the time until end as a text.
func until(end, now time.Time) string {
	days := int(end.Sub(now).Hours() / 24)
	switch {
	case end.Before(now):
		return "ended " + end.UTC().Format(time.RFC3339)
	case days < 1:
		return fmt.Sprintf("expires %s, in %s", end.UTC().Format(time.RFC3339), end.Sub(now).Round(time.Minute))
	}
	return fmt.Sprintf("expires %s, in %d days", end.UTC().Format(time.RFC3339), days)
}
