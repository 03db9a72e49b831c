package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "release-test-")
	if err != nil {
		fail(err)
	}
	shared = sync.OnceValues(func() (*release, error) { return makeAll(dir) })
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// shared is the release for most tests.
var shared func() (*release, error)

func made(t *testing.T) *release {
	t.Helper()
	r, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// makeAll makes a release without the compiler: the program is this test.
func makeAll(out string) (*release, error) {
	r := &release{root: filepath.Join("..", ".."), out: out, version: "v1.2.3", commit: "abc",
		time: time.Unix(1700000000, 0).UTC()}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	images := map[target]string{}
	for text := range strings.SplitSeq(allTargets, ",") {
		system, arch, _ := strings.Cut(text, "/")
		r.targets = append(r.targets, target{system, arch})
		if system == "linux" {
			images[target{system, arch}] = program
		}
	}
	license := []byte("a license\n")
	r.extras = extras{
		documents: []entry{{name: "LICENSE", data: license, mode: 0o644}},
		system: []entry{{name: "usr/share/doc/bowsprit/LICENSE", data: license, mode: 0o644},
			{name: "etc/bowsprit/bowsprit.yaml", data: []byte("secure-port: 1\n"), mode: 0o644, config: true}},
	}
	for _, target := range r.targets {
		if err := r.publish(target, program); err != nil {
			return nil, err
		}
	}
	for _, step := range []func() error{func() error { return r.image(images) }, r.chart, r.envtestIndex,
		r.provenance, r.sums} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *release) read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.out, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// untar returns the files of a tar by name, and their headers.
func untar(t *testing.T, from io.Reader) (map[string][]byte, map[string]*tar.Header) {
	t.Helper()
	files, headers := map[string][]byte{}, map[string]*tar.Header{}
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name], headers[h.Name] = data, h
	}
}

func unzip(t *testing.T, data []byte) io.Reader {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTwice checks that a second release has the same files, and that the checksums are right.
func TestTwice(t *testing.T) {
	t.Parallel()
	one := made(t)
	two, err := makeAll(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	names, sums, err := one.made()
	if err != nil || len(names) < 20 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	_, again, err := two.made()
	if err != nil {
		t.Fatal(err)
	}
	listed := string(one.read(t, "SHA256SUMS"))
	for _, name := range names {
		if sums[name] != again[name] {
			t.Errorf("%s differs", name)
		}
		if name != "SHA256SUMS" && !strings.Contains(listed, sums[name]+"  "+name+"\n") {
			t.Errorf("SHA256SUMS does not have %s", name)
		}
	}
	var statement struct {
		Subject []struct {
			Name   string
			Digest map[string]string
		}
	}
	if err := json.Unmarshal(one.read(t, "provenance.intoto.json"), &statement); err != nil {
		t.Fatal(err)
	}
	if len(statement.Subject) != len(names)-2 { // the statement is not its own subject, and the checksums come after it
		t.Errorf("%d subjects of %d files", len(statement.Subject), len(names))
	}
	for _, s := range statement.Subject {
		if s.Digest["sha256"] != sums[s.Name] {
			t.Errorf("provenance of %s: %v", s.Name, s.Digest)
		}
	}
}

func TestArchives(t *testing.T) {
	t.Parallel()
	r := made(t)
	_, headers := untar(t, unzip(t, r.read(t, "bowsprit_1.2.3_darwin_arm64.tar.gz")))
	if h := headers["./bowsprit"]; h == nil || h.Mode != 0o755 || h.Uname != "root" || !h.ModTime.Equal(r.time) {
		t.Errorf("%+v", h)
	}
	data := r.read(t, "bowsprit_1.2.3_windows_amd64.zip")
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if len(z.File) != 2 || z.File[1].Name != "bowsprit.exe" {
		t.Errorf("%+v", z.File)
	}
	formula := string(r.read(t, "bowsprit.rb"))
	if strings.Contains(formula, "@SHA") || strings.Contains(formula, "@VERSION") ||
		strings.Count(formula, "sha256 \"") != 4 {
		t.Error(formula)
	}
}

// TestDeb checks that the package has the members that dpkg requires, in order. dpkg itself reads the package where it
// is installed.
func TestDeb(t *testing.T) {
	t.Parallel()
	r := made(t)
	name := filepath.Join(r.out, "bowsprit_1.2.3_amd64.deb")
	rest := string(r.read(t, "bowsprit_1.2.3_amd64.deb"))
	rest, ok := strings.CutPrefix(rest, "!<arch>\n")
	if !ok {
		t.Fatal("no ar archive")
	}
	members := map[string][]byte{}
	var order []string
	for rest != "" {
		var size int
		if _, err := fmt.Sscan(rest[48:58], &size); err != nil || rest[58:60] != "`\n" {
			t.Fatalf("header %q: %v", rest[:60], err)
		}
		member := strings.TrimSpace(rest[:16])
		order, members[member] = append(order, member), []byte(rest[60:60+size])
		rest = rest[60+size+size%2:]
	}
	if fmt.Sprint(order) != "[debian-binary control.tar.gz data.tar.gz]" {
		t.Error(order)
	}
	control, headers := untar(t, unzip(t, members["control.tar.gz"]))
	if string(control["./conffiles"]) != "/etc/bowsprit/bowsprit.yaml\n" || headers["./postinst"].Mode != 0o755 ||
		!strings.Contains(string(control["./control"]), "\nVersion: 1.2.3\nArchitecture: amd64\n") {
		t.Errorf("%s", control)
	}
	files, _ := untar(t, unzip(t, members["data.tar.gz"]))
	if _, ok := files["./usr/bin/"]; !ok || len(files["./usr/bin/bowsprit"]) == 0 {
		t.Error("the program is not in it")
	}
	if dpkg, err := exec.LookPath("dpkg-deb"); err == nil {
		out, err := exec.Command(dpkg, "--info", name).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "Package: bowsprit") {
			t.Errorf("%v: %s", err, out)
		}
		out, err = exec.Command(dpkg, "--contents", name).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "-rwxr-xr-x root/root") {
			t.Errorf("%v: %s", err, out)
		}
	}
}

// TestImage checks that every part of the image has the name of its digest, and that the configuration lists the layer.
func TestImage(t *testing.T) {
	t.Parallel()
	r := made(t)
	files, _ := untar(t, bytes.NewReader(r.read(t, "bowsprit_1.2.3_image.tar")))
	blob := func(digest string) []byte {
		t.Helper()
		data, ok := files["./blobs/sha256/"+strings.TrimPrefix(digest, "sha256:")]
		if !ok || fmt.Sprintf("sha256:%x", sha256.Sum256(data)) != digest {
			t.Fatalf("%s is missing, or something else", digest)
		}
		return data
	}
	type node struct {
		MediaType         string
		Manifests, Layers []descriptor
		Config            json.RawMessage
		RootFS            struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	parse := func(data []byte) (n node) {
		t.Helper()
		if err := json.Unmarshal(data, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	root := parse(files["./index.json"]).Manifests[0]
	if root.Annotations["org.opencontainers.image.ref.name"] != "v1.2.3" ||
		root.Annotations["io.containerd.image.name"] != "docker.io/library/bowsprit:v1.2.3" {
		t.Errorf("the image has other names: %v", root.Annotations)
	}
	index := parse(blob(root.Digest))
	if len(index.Manifests) != 2 || index.Manifests[1].Platform["architecture"] != "arm64" {
		t.Fatalf("%+v", index)
	}
	manifest := parse(blob(index.Manifests[0].Digest))
	var d descriptor
	if err := json.Unmarshal(manifest.Config, &d); err != nil {
		t.Fatal(err)
	}
	config := parse(blob(d.Digest))
	var ran struct{ Healthcheck struct{ Test []string } }
	if err := json.Unmarshal(config.Config, &ran); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(ran.Healthcheck.Test, " "),
		"CMD /bowsprit kubectl --kubeconfig=/data/kubeconfig get --raw=/readyz"; got != want {
		t.Errorf("the health check is %q, want %q", got, want)
	}
	layer, err := io.ReadAll(unzip(t, blob(manifest.Layers[0].Digest)))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("sha256:%x", sha256.Sum256(layer)); got != config.RootFS.DiffIDs[0] {
		t.Errorf("the layer is %s, not %s", got, config.RootFS.DiffIDs)
	}
	if !bytes.Contains(config.Config, []byte(`"User":"65532:65532"`)) {
		t.Errorf("%s", config.Config)
	}
	_, headers := untar(t, bytes.NewReader(layer))
	if headers["bowsprit"].Mode != 0o755 || headers["data/"].Uid != 65532 || len(headers) != 2 {
		t.Errorf("%+v", headers)
	}
}

// The bill of materials has the modules that are linked.
func TestMaterials(t *testing.T) {
	t.Parallel()
	r := made(t)
	var bom struct {
		BOMFormat  string
		Components []component
	}
	if err := json.Unmarshal(r.read(t, "bowsprit_1.2.3_linux_amd64.cdx.json"), &bom); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, c := range bom.Components {
		found = found || strings.HasPrefix(c.PURL, "pkg:golang/github.com/google/rpmpack@v") && len(c.Properties) == 1
	}
	if bom.BOMFormat != "CycloneDX" || !found {
		t.Errorf("%+v", bom)
	}
}

func TestRPM(t *testing.T) {
	t.Parallel()
	data := made(t).read(t, "bowsprit-1.2.3-1.x86_64.rpm")
	if !bytes.HasPrefix(data, []byte{0xed, 0xab, 0xee, 0xdb}) || !bytes.Contains(data, []byte("/usr/bin/")) {
		t.Error("no package of RPM")
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v1.2.3": "1.2.3", "v1.2.3-rc.1": "1.2.3~rc.1", "be57aec": "0.0.0~be57aec",
		"be57aec-dirty": "0.0.0~be57aec~dirty",
		"0b7cc3d":       "0.0.0~0b7cc3d", "v0.1.0-3-gabc": "0.1.0~3~gabc",
	} {
		if got := (&release{version: version}).number(); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
}
