package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
	"github.com/bowsprit/bowsprit/testserver"
)

// TestStatus checks that a running server reports all parts.
func TestStatus(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t)
	s, err := look(t.Context(), server.RESTConfig(), time.Millisecond)
	for err == nil && !s.Ready { // APIServices are registered in the background
		s, err = look(t.Context(), server.RESTConfig(), time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if !s.Ready || s.Version != "v1.37.2" && !strings.HasPrefix(s.Version, "v1.37.2+") || s.Missing != "" ||
		s.Certificate == nil || s.Certificate.Before(now) || s.ClientCertificate == nil {
		t.Errorf("%+v", s)
	}
	f := s.Running
	if f == nil || f.Objects < 50 || f.MemoryBytes < 1e6 || f.Started.After(now) || f.DatabaseBytes == 0 {
		t.Errorf("%+v", f)
	}
	var text, raw bytes.Buffer
	if err := errors.Join(s.show(&text, "text"), s.show(&raw, "json")); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"Ready             yes\n", " days\n", " definitions\n", " watches\n", server.URL()} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("there is no %q in\n%s", want, &text)
		}
	}
	var again status
	if err := json.Unmarshal(raw.Bytes(), &again); err != nil || again.Running.Objects != f.Objects {
		t.Errorf("%v\n%s", err, &raw)
	}
}

// TestStatusOfOneThatIsNotReady checks that the output names failing checks and forbidden parts, and that the command
// fails for a server that is not ready.
func TestStatusOfOneThatIsNotReady(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	page := func(path string, code int, text string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = w.Write([]byte(text))
		})
	}
	page("/version", 200, `{"gitVersion":"v1.37.2"}`)
	page("/readyz", 500, "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n")
	page("/metrics", 403, "")
	server := httptest.NewServer(mux)
	defer server.Close()
	s, err := look(t.Context(), &rest.Config{Host: server.URL}, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := s.show(&out, "text"); !errors.Is(err, errNotReady) {
		t.Error(err)
	}
	for _, want := range []string{"no: etcd failed: reason withheld\n", "none: GET /metrics: 403 Forbidden\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, &out)
		}
	}
	server.Close()
	_, err = look(t.Context(), &rest.Config{Host: server.URL}, 0)
	if err == nil {
		t.Fatal("a server that is not there has a status")
	}
	out.Reset()
	if got := unreachable(&out, output.Text, server.URL, err); got != err || out.Len() > 0 {
		t.Errorf("as text: %v, %s", got, &out)
	}
	got := unreachable(&out, output.YAML, server.URL, err)
	if got != err || !strings.Contains(out.String(), "\nready: false\n") ||
		!strings.Contains(out.String(), "\nserver: http") || !strings.Contains(out.String(), "error: ") {
		t.Errorf("for programs: %v, %s", got, &out)
	}
}

// TestSums checks that values are added up by metric, and that special series are counted apart.
func TestSums(t *testing.T) {
	t.Parallel()
	got := sums(`# HELP a b
a{x="1"} 2
a{x="two words"} 3.5
bad
apiserver_resource_objects{group="",resource="pods"} 4
apiserver_resource_objects{group="apiextensions.k8s.io",resource="customresourcedefinitions"} 5
apiserver_longrunning_requests{verb="WATCH"} 6
apiserver_longrunning_requests{verb="CONNECT"} 7
`)
	want := map[string]float64{"a": 5.5, "apiserver_resource_objects": 9, definitions: 5,
		"apiserver_longrunning_requests": 6}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: %v, want %v", name, got[name], value)
		}
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, end := range map[string]time.Time{
		"ended 2025-12-31T00:00:00Z":               now.AddDate(0, 0, -1),
		"expires 2026-01-01T02:00:00Z, in 2h0m0s":  now.Add(2 * time.Hour),
		"expires 2026-01-11T00:00:00Z, in 10 days": now.AddDate(0, 0, 10),
	} {
		if got := until(end, now); got != text {
			t.Errorf("%s, want %s", got, text)
		}
	}
}
