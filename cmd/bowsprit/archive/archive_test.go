package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/storage/backup"
	"github.com/bowsprit/bowsprit/internal/storage/format"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/embedded"
	"github.com/bowsprit/bowsprit/testserver"
)

// makeData returns a data directory with a key in the store and one in pki.
func makeData(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(t.Context(), store.Config{Etcd: embedded.Config{Dir: backup.EtcdDir(dir)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), "configmaps/default/a", []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "pki"), 0o700),
		os.WriteFile(filepath.Join(dir, "pki", "ca.key"), []byte("secret"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	data, file := makeData(t), filepath.Join(t.TempDir(), "b.tar")
	m, err := save(t.Context(), file, "v9", backupFlags{dataDir: data}, nil)
	if err != nil || m.certificates() != 1 || m.Keys == 0 {
		t.Fatalf("%+v, %v", m, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v %v", info.Mode(), err)
	}
	if _, err := save(t.Context(), file, "v9", backupFlags{dataDir: data}, nil); err == nil {
		t.Error("a file was replaced without --force")
	}
	if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	to := filepath.Join(t.TempDir(), "deep", "data")
	got, err := restore(file, restoreFlags{dataDir: to, bump: 1000}, nil)
	if err != nil || got.Revision < m.Revision+1000 {
		t.Fatalf("%+v, %v", got, err)
	}
	if key, err := os.ReadFile(filepath.Join(to, "pki", "ca.key")); err != nil || string(key) != "secret" {
		t.Errorf("%q, %v", key, err)
	}
	if left, _ := filepath.Glob(filepath.Join(to, ".restore-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	s, err := store.Open(t.Context(), store.Config{Etcd: embedded.Config{Dir: backup.EtcdDir(to)}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if r, err := s.Get(t.Context(), "configmaps/default/a"); err != nil || string(r.Value) != "hello" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := restore(file, restoreFlags{dataDir: to}, nil); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("over a server's data: %v", err)
	}
}

// TestNewerData checks that data of an unsupported format is neither saved nor restored.
func TestNewerData(t *testing.T) {
	t.Parallel()
	data, file := makeData(t), filepath.Join(t.TempDir(), "b.tar")
	m, err := save(t.Context(), file, "v9", backupFlags{dataDir: data}, nil)
	if err != nil || m.DataFormat != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	m.DataFormat = format.Current + 1
	const want = "written by bowsprit v9"
	if err := m.validate(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a backup of newer data: %v", err)
	}
	if err := os.WriteFile(filepath.Join(data, "format.json"), []byte(`{"format":99,"version":"v9"}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	_, err = save(t.Context(), file, "v1", backupFlags{dataDir: data, force: true}, nil)
	if !errors.Is(err, format.ErrNewer) {
		t.Errorf("newer data: %v", err)
	}
}

// TestDamaged checks that a file with a changed byte, a missing end or extra data is refused, and that restore leaves
// no files.
func TestDamaged(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "b.tar")
	if _, err := save(t.Context(), file, "v9", backupFlags{dataDir: makeData(t)}, nil); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(good)
	flipped[bytes.LastIndex(flipped, []byte("secret"))] ^= 1
	for name, bad := range map[string][]byte{
		"a changed key": flipped, "half of it": good[:len(good)/2], "empty": {}, "text": []byte("hello\n"),
		"newer": bytes.Replace(good, []byte(`"format": 1`), []byte(`"format": 7`), 1),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(t.TempDir(), "data")
			_, err := restore(file, restoreFlags{dataDir: to}, nil)
			if err == nil {
				t.Fatal("it was restored")
			}
			if name == "half of it" && !strings.Contains(err.Error(), "it is damaged: it ends in the middle of etcd.db") {
				t.Error(err)
			}
			if name == "newer" && !strings.Contains(err.Error(), "use bowsprit v9 or later") {
				t.Error(err)
			}
			if _, missing := os.Stat(to); !errors.Is(missing, os.ErrNotExist) {
				t.Errorf("%s is there: %v", to, missing)
			}
		})
	}
}

// TestKeyFiles checks that a backup has each file that a server makes in pki/, and no other.
func TestKeyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testserver.Start(t, func(c *bowsprit.Config) { c.Ephemeral, c.DataDir = false, dir })
	entries, err := os.ReadDir(filepath.Join(dir, pkiFolder))
	if err != nil {
		t.Fatal(err)
	}
	var made []string
	for _, e := range entries {
		made = append(made, e.Name())
	}
	want := slices.Sorted(slices.Values(keyFiles))
	if !slices.Equal(made, want) {
		t.Errorf("the server has made %q, and a backup has %q", made, want)
	}
}

// TestForeignNames checks that names that lead out of the directory are refused before anything is written.
func TestForeignNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"../x", "pki/../../x", "pki/", "pki/a/b", "/etc/x", "pki/..", "other", "etcd.db", "pki/extra",
		"pki/ca.key\nx", "pki/\nca.key", "pki/ca.key\x00", "pki/CA.key", "pki/ca.key ", "./pki/ca.key", "pki//ca.key",
		"pki/.ca.key", "pki/authorized_keys", "pki/other.crt", "pki/\x1b[2Jca.key", "pki\\ca.key", "kubeconfig",
		"pki/ca.key/", "pki/ca", "etcd.db\n",
	} {
		m := &Manifest{Format: layout, Files: []File{{Name: databaseName}, {Name: name}}}
		if err := m.validate(); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if err := (&Manifest{Format: layout}).validate(); err == nil {
		t.Error("no database, and no error")
	}
}

// TestEntryLongerThanHeader checks that data after the files of the manifest is refused too.
func TestEntryLongerThanHeader(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, databaseName), []byte("db"), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := describe(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := write(&b, &Manifest{Format: layout, Files: files}, dir, nil); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()[:b.Len()-1024] // without the end of the archive
	more := bytes.NewBuffer(whole)
	w := tar.NewWriter(more)
	if err := errors.Join(add(w, "pki/extra", 1, time.Time{}, strings.NewReader("x")), w.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := read(more, nil, nothing); err == nil || !strings.Contains(err.Error(), "more files than") {
		t.Error(err)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &progress{out: &out, step: 1 << 20}
	p.begin("reading")
	for range 5 {
		if _, err := p.Write(make([]byte, 600<<10)); err != nil {
			t.Fatal(err)
		}
	}
	const want = "reading ...\nreading ... 1.2 MiB\nreading ... 2.3 MiB\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
