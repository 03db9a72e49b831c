package node

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A hung spec is cut off, after the longest time of any spec, which waits until etcd has been compacted twice. A spec
// that has not passed runs once more, alone.
const (
	specLimit = 12 * time.Minute
	atOnce    = 4
)

// suite runs specs in a cluster, each in its own process, so that a spec can be cut off alone.
type suite struct {
	*realNode
	results string // a directory for logs; with ".txt", the file of results
	mu      struct {
		sync.Mutex
		passed, failed int
	}
}

func suiteFile() string { return filepath.Join(binaries, "e2e.test") }

// ofSuite are the programs built from k8s.io/kubernetes/test: the specs, and the programs in their images.
var ofSuite = map[string][]string{
	"e2e.test": {"test", "-vet=off", "-c", "-o", "e2e.test", "k8s.io/kubernetes/test/e2e"},
	"agnhost":  {"build", "-o", "agnhost", "k8s.io/kubernetes/test/images/agnhost"},
	"nnp":      {"build", "-o", "nnp", "k8s.io/kubernetes/test/images/nonewprivs"},
}

// buildSuite is a step of preparation (see onMachine). The specs need more modules than the programs: buildSuite adds
// them, in Kubernetes' versions, to a copy of the module programs.
func buildSuite(t *testing.T) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "programs")
	if err := os.CopyFS(dir, os.DirFS("programs")); err != nil {
		t.Fatal(err)
	}
	for name, args := range ofSuite {
		target := filepath.Join(binaries, name)
		if _, err := os.Stat(target); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		cmd := exec.CommandContext(t.Context(), "go", append([]string{args[0], "-mod=mod"}, args[1:]...)...)
		cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("build %s: %v", name, err)
		}
		if err := exec.CommandContext(t.Context(), "mv", filepath.Join(dir, name), target).Run(); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs the chosen specs: first the parallel ones, then the serial ones, then again the failed ones, one by one.
func (s *suite) run(t *testing.T, chosen string) {
	t.Helper()
	for _, old := range []string{s.results, s.results + ".txt"} {
		if err := os.RemoveAll(old); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(s.results, 0o755); err != nil {
		t.Fatal(err)
	}
	parallel, serial := specs(t, chosen)
	again := s.runAll(t, parallel, atOnce)
	again = append(again, s.runAll(t, serial, 1)...)
	s.runAll(t, again, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Logf("%d of %d specs passed", s.mu.passed, len(parallel)+len(serial))
}

// runAll runs specs, so many at once, and returns the failed ones.
func (s *suite) runAll(t *testing.T, names []string, atOnce int) (again []string) {
	t.Helper()
	next, failed := make(chan string), make(chan string, len(names))
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for name := range next {
				if s.spec(t, name) {
					failed <- name
				}
			}
		})
	}
	for _, name := range names {
		next <- name
	}
	close(next)
	workers.Wait()
	close(failed)
	for name := range failed {
		again = append(again, name)
	}
	return again
}

// spec runs one spec, records its outcome, and reports whether it should run again.
func (s *suite) spec(t *testing.T, name string) bool {
	t.Helper()
	log := fmt.Sprintf("%x.log", sha256.Sum256([]byte(name)))[54:]
	ctx, cancel := context.WithTimeout(t.Context(), specLimit)
	defer cancel()
	focus := regexp.MustCompile(`[^A-Za-z0-9 ]`).ReplaceAllString(name, ".")
	cmd := exec.CommandContext(ctx, suiteFile(), "--ginkgo.no-color", "--ginkgo.v", "--ginkgo.focus="+focus,
		"--provider=skeleton", "--disable-log-dump", "--kubeconfig="+s.kubeconfig())
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // it cleans up then
	cmd.WaitDelay = time.Minute
	cmd.Dir, cmd.Env = s.home, s.env()
	began := time.Now()
	out, err := cmd.CombinedOutput()
	end := "failed"
	switch {
	case ctx.Err() != nil:
		end = "cut"
	case err == nil && bytes.Contains(out, []byte("\nRan 1 of ")):
		end = "passed"
	case err == nil:
		end = "skipped"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if end == "passed" {
		s.mu.passed++
	}
	if err := os.WriteFile(filepath.Join(s.results, log), out, 0o644); err != nil {
		t.Error(err)
	}
	file, err := os.OpenFile(s.results+".txt", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Error(err)
		return false
	}
	defer file.Close()
	fmt.Fprintf(file, "%s\t%s %d s\t%s\n", end, log, int(time.Since(began).Seconds()), name)
	return end == "failed" || end == "cut"
}
