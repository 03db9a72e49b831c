package audit

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// TestRotation writes lines to a file one by one, and checks the files after each.
func TestRotation(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 16, 0, 0, 0, time.UTC)
	line := []byte(strings.Repeat("x", 9) + "\n")
	for _, c := range []struct {
		name string
		o    fileOptions
		step time.Duration
		want []string
	}{
		{"no bound", fileOptions{}, time.Hour, []string{"audit.log"}},
		{"all kept", fileOptions{maxSize: 10}, time.Hour, []string{
			"audit-2026-11-22T17-00-00.000.log", "audit-2026-11-22T18-00-00.000.log",
			"audit-2026-11-22T19-00-00.000.log", "audit.log",
		}},
		{"two lines to a file", fileOptions{maxSize: 25}, time.Hour, []string{
			"audit-2026-11-22T18-00-00.000.log", "audit.log",
		}},
		{"at the same time", fileOptions{maxSize: 10}, 0, []string{
			"audit-2026-11-22T16-00-00.000.log", "audit-2026-11-22T16-00-00.001.log",
			"audit-2026-11-22T16-00-00.002.log", "audit.log",
		}},
		{"two kept", fileOptions{maxSize: 10, maxBackups: 2}, time.Hour, []string{
			"audit-2026-11-22T18-00-00.000.log", "audit-2026-11-22T19-00-00.000.log", "audit.log",
		}},
		{"a day kept", fileOptions{maxSize: 10, maxAge: 1}, 24 * time.Hour, []string{
			"audit-2026-11-24T16-00-00.000.log", "audit-2026-11-25T16-00-00.000.log", "audit.log",
		}},
		{"compressed", fileOptions{maxSize: 10, maxBackups: 1, compress: true}, time.Hour, []string{
			"audit-2026-11-22T19-00-00.000.log.gz", "audit.log",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "logs")
			now := at
			c.o.path, c.o.now = filepath.Join(dir, "audit.log"), func() time.Time { return now }
			f, err := openFile(c.o)
			if err != nil {
				t.Fatal(err)
			}
			for range 4 {
				if _, err := f.Write(line); err != nil {
					t.Fatal(err)
				}
				f.tidiers.Wait() // so that each runs at its own time
				now = now.Add(c.step)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if got := names(t, dir); !slices.Equal(got, c.want) {
				t.Errorf("files are %q, want %q", got, c.want)
			}
			info, err := os.Stat(c.o.path)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the log has mode %v, %v", info.Mode(), err)
			}
		})
	}
}

func TestCompressed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.log")
	if err := os.WriteFile(path, []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := compress(path); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(path + ".gz")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestOtherFilesStay keeps files that only resemble a log file.
func TestOtherFilesStay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"audit-old.log", "audit-2026-11-22T16-00-00.000.txt", "other.log"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := openFile(fileOptions{path: filepath.Join(dir, "audit.log"), maxSize: 1 << 20, maxBackups: 1, maxAge: 1})
	if err != nil {
		t.Fatal(err)
	}
	f.tidy()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); len(got) != 4 {
		t.Errorf("files are %q", got)
	}
}

func TestLineTooLong(t *testing.T) {
	t.Parallel()
	f, err := openFile(fileOptions{path: filepath.Join(t.TempDir(), "audit.log"), maxSize: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const want = "write length 7 exceeds maximum file size 5"
	if _, err := f.Write([]byte("1234567")); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
