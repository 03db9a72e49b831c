package manifest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bowsprit/bowsprit/internal/testing/logtest"
)

const configuration = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %s.static.k8s.io}
`

// watched is a folder with a source.
type watched struct {
	t        *testing.T
	dir      string
	source   *Source[Webhooks]
	log      logtest.Log
	registry *prometheus.Registry
}

func watch(t *testing.T, now func() time.Time) *watched {
	t.Helper()
	w := &watched{t: t, dir: t.TempDir(), registry: prometheus.NewRegistry()}
	w.put("a.yaml", fmt.Sprintf(configuration, "a"))
	var err error
	w.source, err = ValidatingWebhooks(Config{
		Folder: w.dir, Plugin: "P", Now: now, Log: slog.New(slog.NewTextHandler(&w.log, nil)),
		Metrics: NewMetrics(w.registry, "server"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// put writes a file at once, as an operator should.
func (w *watched) put(name, text string) {
	w.t.Helper()
	file := filepath.Join(w.dir, name)
	write(w.t, file+".tmp", text)
	if err := os.Rename(file+".tmp", file); err != nil {
		w.t.Fatal(err)
	}
}

// names returns the names of the current objects.
func (w *watched) names() string {
	var all []string
	for _, one := range w.source.List().Items {
		all = append(all, strings.TrimSuffix(one.Name, ".static.k8s.io"))
	}
	return strings.Join(all, " ")
}

// counts returns the numbers of successful and failed loads, the hash in effect, and the seconds of the last failure.
func (w *watched) counts() (good, bad int, hash string, failedAt float64) {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["plugin"] != "P" || !strings.HasPrefix(labels["apiserver_id_hash"], "sha256:b3eacd33") {
				w.t.Errorf("%s has the labels %v", f.GetName(), labels)
			}
			switch name := strings.TrimPrefix(f.GetName(), "apiserver_manifest_admission_config_controller_"); {
			case name == "automatic_reloads_total" && labels["status"] == "success":
				good = int(m.GetCounter().GetValue())
			case name == "automatic_reloads_total":
				bad = int(m.GetCounter().GetValue())
			case name == "last_config_info" && hash != "":
				w.t.Errorf("two hashes, %s and %s", hash, labels["hash"])
			case name == "last_config_info":
				hash = labels["hash"]
			case name == "automatic_reload_last_timestamp_seconds" && labels["status"] == "failure":
				failedAt = m.GetGauge().GetValue()
			}
		}
	}
	return good, bad, hash, failedAt
}

func TestReload(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	w := watch(t, func() time.Time { return now })
	expect := func(step, names string, good, bad int) {
		t.Helper()
		w.source.Reload()
		g, b, hash, _ := w.counts()
		if w.names() != names || g != good || b != bad || (hash == "") != (names == "") {
			t.Errorf("%s: objects %q, loads %d and %d, hash %q; want %q, %d and %d", step, w.names(), g, b, hash, names,
				good, bad)
		}
	}
	expect("unchanged", "a", 1, 0)
	before := w.source.List()
	w.put("b.yaml", fmt.Sprintf(configuration, "b"))
	expect("another file", "a b", 2, 0)
	if before == w.source.List() || len(before.Items) != 1 {
		t.Error("the list has changed in place")
	}
	w.put("a.yaml", "kind: [")
	expect("an invalid file", "a b", 2, 1)
	now = now.Add(complainEvery - 1)
	expect("the same file within a minute", "a b", 2, 1)
	now = now.Add(1)
	expect("the same file after a minute", "a b", 2, 2)
	w.put("a.yaml", "other: [")
	expect("the same error", "a b", 2, 2)
	w.put("a.yaml", fmt.Sprintf(configuration, "b"))
	expect("another error", "a b", 2, 3)
	if _, _, _, at := w.counts(); at != float64(now.Unix()) {
		t.Errorf("failed at %v", at)
	}
	if text := w.log.Take(); strings.Count(text, "level=ERROR") != 3 ||
		!strings.Contains(text, `duplicate name \"b.static.k8s.io\"`) {
		t.Errorf("the log has\n%s", text)
	}
	w.put("a.yaml", fmt.Sprintf(configuration, "a"))
	expect("the valid files of before", "a b", 2, 3)
	if text := w.log.String(); text != "" {
		t.Errorf("the log has %s", text)
	}
	for _, name := range []string{"a.yaml", "b.yaml"} {
		if err := os.Remove(filepath.Join(w.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	expect("no files", "", 3, 3)
	if err := os.Remove(w.dir); err != nil {
		t.Fatal(err)
	}
	expect("no folder", "", 3, 4)
}

// TestRun checks that changes take effect by themselves, within seconds.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, time.Now)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { w.source.Run(ctx); close(ended) }()
		synctest.Wait()
		w.put("b.yaml", fmt.Sprintf(configuration, "b"))
		time.Sleep(lookEvery)
		synctest.Wait()
		if w.names() != "a b" {
			t.Errorf("objects %q", w.names())
		}
		cancel()
		<-ended
	})
}

func TestFolderBounds(t *testing.T) {
	t.Parallel()
	open := func(dir string) error {
		_, err := MutatingWebhooks(Config{Folder: dir, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		return err
	}
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "a.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(dir); err == nil || !strings.HasSuffix(err.Error(), "a.yaml\": not a regular file") {
		t.Errorf("a pipe: %v", err)
	}
	dir = t.TempDir()
	large := strings.Repeat("# a comment\n", maxFolder/20)
	write(t, filepath.Join(dir, "a.txt"), large)
	write(t, filepath.Join(dir, "b.yaml"), "---\n"+large)
	write(t, filepath.Join(dir, "c.yaml"), "---\n"+large)
	if err := open(dir); err == nil || !strings.HasSuffix(err.Error(),
		"c.yaml\": the manifests of the folder are larger than 16 MiB together: remove some") {
		t.Errorf("large files: %v", err)
	}
	dir = t.TempDir()
	write(t, filepath.Join(dir, "b.yaml"), "---\n"+large[:10*maxError])
	if err := open(dir); err == nil || len(err.Error()) > maxError+1000 ||
		!strings.Contains(err.Error(), "Object 'Kind' is missing in '---") {
		t.Errorf("a large file without a kind: %.2000s", err)
	}
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "a.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := open(dir); err != nil {
		t.Errorf("a subfolder: %v", err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "b.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := open(dir); err == nil || !strings.Contains(err.Error(), "no such file or directory") {
		t.Errorf("a link to nothing: %v", err)
	}
}

// TestNone checks that a source without a folder has no objects.
func TestNone(t *testing.T) {
	t.Parallel()
	var s *Source[Webhooks]
	if l := s.List(); l != nil {
		t.Errorf("objects %v", l)
	}
}
