package embedded

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/fault"
)

// refused opens a store that must not open, and returns the error's text.
func refused(t *testing.T, c store.Opener, want ...string) {
	t.Helper()
	s, err := store.Open(testContext(t), store.Config{Etcd: c, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		s.Close()
		t.Fatal("the store opened")
	}
	t.Log(err)
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

func TestOpenRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	url := "http://" + busy.Addr().String()

	for name, c := range map[string]struct {
		Config
		want []string
	}{
		"no directory": {Config{}, []string{"no data directory"}},
		"file as directory": {Config{Dir: file},
			[]string{file, "cannot be made", "choose another"}},
		"below a file": {Config{Dir: file + "/x"}, []string{file, "cannot be made"}},
		"wrong URL": {Config{Dir: filepath.Join(dir, "a"), ListenClientURL: "localhost"},
			[]string{"localhost", "such as"}},
		"busy port": {
			Config{Dir: filepath.Join(dir, "b"), NoSync: true, ListenClientURL: url},
			[]string{url, "address already in use", "choose another"},
		},
	} {
		t.Run(name, func(t *testing.T) { refused(t, c.Config, c.want...) })
	}
}

func TestLocked(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "etcd")
	s, _ := open(t, Config{Dir: dir})
	refused(t, Config{Dir: dir}, dir, "in use by another process", "stop it")
	if _, err := s.Create(testContext(t), "k", []byte("v")); err != nil {
		t.Errorf("the first user is disturbed: %v", err)
	}
	s.Close()
	open(t, Config{Dir: dir})
}

// TestLockedByEtcd runs a plain etcd, which ignores our lock file, on our directory.
func TestLockedByEtcd(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "etcd")
	s, _ := open(t, Config{Dir: dir})
	s.Close()
	segments, _ := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	lock, err := fileutil.TryLockFile(segments[0], os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, Config{Dir: dir}, dir, "in use by another etcd")
	lock.Close()
	open(t, Config{Dir: dir})
}

func TestRestart(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	dir := filepath.Join(t.TempDir(), "etcd")
	var last int64
	for round := range 4 {
		s, _ := open(t, Config{Dir: dir})
		if rev, err := s.Revision(ctx); err != nil || last > 0 && rev != last {
			t.Errorf("revision after restart: %d, %v; want %d", rev, err, last)
		}
		r, err := s.Range(ctx, store.RangeOptions{Prefix: "a/"})
		if err != nil || len(r.Records) != round*10 {
			t.Errorf("round %d: %d records, %v", round, len(r.Records), err)
		}
		for i := range 10 {
			if last, err = s.Create(ctx, fmt.Sprintf("a/%d-%d", round, i), []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("second close: %v", err)
		}
		if _, err := s.Create(ctx, "late", nil); !errors.Is(err, store.ErrClosed) {
			t.Errorf("create after close: %v", err)
		}
		if _, err := s.Get(ctx, "late"); !errors.Is(err, store.ErrClosed) {
			t.Errorf("get after close: %v", err)
		}
		if err := s.Check(ctx); !errors.Is(err, store.ErrClosed) {
			t.Errorf("check after close: %v", err)
		}
		if _, ok := <-s.Watch(ctx, 1); ok {
			t.Error("watch after close delivers")
		}
	}
}

// TestRestartLong restarts after thousands of writes: the log has been cut, and etcd logs nothing.
func TestRestartLong(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	dir := filepath.Join(t.TempDir(), "etcd")
	s, _ := open(t, Config{Dir: dir})
	const writers, each = 16, 400
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if _, err := s.Create(ctx, fmt.Sprintf("k/%d-%d", w, i), make([]byte, 5000)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s.Close()
	s, _ = open(t, Config{Dir: dir})
	if r, err := s.Range(ctx, store.RangeOptions{Prefix: "k/"}); err != nil || len(r.Records) != writers*each {
		t.Errorf("%d records, %v", len(r.Records), err)
	}
	if segments, _ := filepath.Glob(filepath.Join(dir, "member", "snap", "*.snap")); len(segments) == 0 {
		t.Error("the log was never cut")
	}
}

// filled creates a data directory with some keys, as a killed process leaves it: copied while it runs.
func filled(t *testing.T, copyRunning bool) (dir string, keys int) {
	t.Helper()
	// Not t.TempDir: an etcd that failed to start may still create a file while the test removes the directory.
	root, err := os.MkdirTemp("", "store")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for deadline := time.Now().Add(time.Minute); os.RemoveAll(root) != nil && time.Now().Before(deadline); {
			runtime.Gosched()
		}
	})
	dir = filepath.Join(root, "etcd")
	s, _ := open(t, Config{Dir: dir})
	keys = 500
	for i := range keys {
		if _, err := s.Create(testContext(t), fmt.Sprintf("k/%03d", i), make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if copyRunning {
		dir = filepath.Join(root, "copy")
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "etcd"))); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	return dir, keys
}

// The database may be behind when a process is killed; the log has the rest.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir, keys := filled(t, true)
	s, err := store.Open(testContext(t),
		store.Config{Etcd: Config{Dir: dir, NoSync: true}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Range(testContext(t), store.RangeOptions{Prefix: "k/"})
	if err != nil || len(r.Records) != keys {
		t.Errorf("%d records, %v; want %d", len(r.Records), err, keys)
	}
}

func TestDamaged(t *testing.T) {
	t.Parallel()
	db := func(dir string) string { return filepath.Join(dir, "member", "snap", "db") }
	wal := func(dir string) string {
		segments, _ := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
		return segments[0]
	}
	garble := func(path string, from, to int64) error {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		junk := make([]byte, to-from)
		rand.Read(junk)
		_, err = f.WriteAt(junk, from)
		return err
	}
	for name, harm := range map[string]func(dir string) error{
		"database truncated":        func(dir string) error { return os.Truncate(db(dir), 64<<10) },
		"database truncated to 100": func(dir string) error { return os.Truncate(db(dir), 100) },
		"database header garbled":   func(dir string) error { return garble(db(dir), 0, 8192) },
		"database body garbled":     func(dir string) error { return garble(db(dir), 8192, 1<<20) },
		"database is a directory":   func(dir string) error { os.Remove(db(dir)); return os.Mkdir(db(dir), 0o700) },
		"database missing":          func(dir string) error { return os.Remove(db(dir)) },
		"log header garbled":        func(dir string) error { return garble(wal(dir), 0, 512) },
		"log body garbled":          func(dir string) error { return garble(wal(dir), 20_000, 30_000) },
		"log truncated to nothing":  func(dir string) error { return os.Truncate(wal(dir), 0) },
		"log missing":               func(dir string) error { return os.RemoveAll(filepath.Dir(wal(dir))) },
		"log emptied":               func(dir string) error { return os.Remove(wal(dir)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, keys := filled(t, false)
			if err := harm(dir); err != nil {
				t.Fatal(err)
			}
			s, err := store.Open(testContext(t),
				store.Config{Etcd: Config{Dir: dir, NoSync: true}, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Log(err)
				if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), dir) ||
					!strings.Contains(err.Error(), "backup") {
					t.Errorf("%q is not one line that says what to do", err)
				}
				return
			}
			// Opening may succeed only if nothing was lost: etcd can rebuild the database from the log.
			defer s.Close()
			r, err := s.Range(testContext(t), store.RangeOptions{Prefix: "k/"})
			if err != nil || len(r.Records) != keys {
				t.Errorf("opened with %d records of %d, %v", len(r.Records), keys, err)
			}
		})
	}
}

// TestLogBehindDatabase checks that a log older than the database is refused with a message: etcd would wait for ever.
// The reverse is a crash, see TestKilled.
func TestLogBehindDatabase(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "etcd")
	log := filepath.Join(dir, "member", "wal")
	fill := func(name string) {
		s, _ := open(t, Config{Dir: dir})
		for i := range 50 {
			if _, err := s.Create(testContext(t), fmt.Sprintf("%s/%d", name, i), []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	fill("old")
	old := filepath.Join(t.TempDir(), "wal")
	if err := os.CopyFS(old, os.DirFS(log)); err != nil {
		t.Fatal(err)
	}
	fill("new")
	if err := errors.Join(os.RemoveAll(log), os.CopyFS(log, os.DirFS(old))); err != nil {
		t.Fatal(err)
	}
	_, err := store.Open(testContext(t),
		store.Config{Etcd: Config{Dir: dir, NoSync: true}, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "the log is older than the database") ||
		!strings.Contains(err.Error(), "restore it from a backup") {
		t.Errorf("opened with %v", err)
	}
}

// Only damage is called damage.
func TestStartErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"failed to open database: cannot allocate memory":                    "not enough memory",
		"create WAL error: no space left on device":                          "no space left for data directory",
		"open /data/etcd/member/snap/db: permission denied":                  "cannot be used",
		"open /data/etcd/member/wal/0.wal: too many open files":              "cannot be used",
		"/data/etcd/member/snap/db: page 3 is damaged":                       "is damaged or not readable",
		"address 127.0.0.1: missing port in address":                         "Nothing shows damage",
		"context deadline exceeded":                                          "Nothing shows damage",
		"lookup localhost: no such host":                                     "Nothing shows damage",
		"open /data/etcd/member/snap/db: input/output error":                 "Nothing shows damage",
		"open /data/etcd/member/snap/db: resource temporarily unavailable":   "Nothing shows damage",
		"open /data/etcd/member/snap/db: operation not permitted":            "Nothing shows damage",
		"etcdserver: too many requests":                                      "Nothing shows damage",
		"member 1 has already been bootstrapped":                             "Nothing shows damage",
		"listen tcp 127.0.0.1:2379: bind: address already in use":            "cannot listen on http://127.0.0.1:2379",
		"walpb: crc mismatch: expected: 1 computed: 2 cannot parse anything": "is damaged or not readable",
	} {
		err := startError(Config{Dir: "/data/etcd", ListenClientURL: "http://127.0.0.1:2379"}, errors.New(text))
		damaged := strings.Contains(err.Error(), "is damaged")
		if !strings.Contains(err.Error(), want) || damaged != (want == "is damaged or not readable") {
			t.Errorf("%q becomes %q", text, err)
		}
	}
}

// TestFault checks that the store fails when etcd gives up while it runs, and that the process does not end.
func TestFault(t *testing.T) {
	t.Parallel()
	f := fault.New()
	lg := fault.Logger(slog.New(slog.DiscardHandler), f)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lg.Fatal("disk is full")
	}()
	<-ended
	if err := f.Err(); err == nil || err.Error() != "disk is full" {
		t.Errorf("fault: %v", err)
	}
	s, l := openLogged(t, Config{}, slog.New(slog.DiscardHandler))
	watch := s.Watch(testContext(t), 1)
	l.fault.Set("disk is full")
	defer func() { l.etcd.Close() }()
	<-s.Failed()
	if b := <-watch; b.Err == nil {
		t.Error("the watch goes on")
	}
	if _, err := s.Create(testContext(t), "k", nil); err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("create: %v", err)
	}
	if err := s.Check(testContext(t)); err == nil {
		t.Error("check finds nothing")
	}
	if err := s.Close(); err == nil {
		t.Error("close says nothing")
	}
}
