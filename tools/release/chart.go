package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// semantic matches a version that Helm accepts.
var semantic = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// chartVersion returns the version of the chart: the release's, or a pre-release of 0.0.0 if that is not a semantic
// version.
func (r *release) chartVersion() string {
	v := strings.TrimPrefix(r.version, "v")
	if !semantic.MatchString(v) {
		v = "0.0.0-" + regexp.MustCompile(`[^0-9A-Za-z.-]+`).ReplaceAllString(v, "-")
	}
	return v
}

// chart packs packaging/chart as helm package does, with the version of the release.
func (r *release) chart() error {
	var files []entry
	dir := os.DirFS(filepath.Join(r.root, "packaging", "chart"))
	err := fs.WalkDir(dir, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(dir, name)
		if name == "Chart.yaml" {
			version := fmt.Appendf(nil, "\nversion: %s\nappVersion: %q\n", r.chartVersion(), r.version)
			data = bytes.Replace(data, []byte("\nversion: 0.0.0\nappVersion: devel\n"), version, 1)
			if !bytes.Contains(data, []byte(r.version)) || bytes.Contains(data, []byte("devel")) {
				return fmt.Errorf("%s does not have the lines version: 0.0.0 and appVersion: devel", name)
			}
		}
		files = append(files, entry{name: path.Join("bowsprit", name), data: data, mode: 0o644})
		return err
	})
	if err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	data, err := r.plain(sorted(files))
	if err != nil {
		return err
	}
	return r.write("bowsprit-chart-"+r.chartVersion()+".tgz", data)
}

// plain makes a compressed tar of only files, with unchanged names: Helm and setup-envtest read no other entries.
func (r *release) plain(files []entry) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: r.time,
			Format: tar.FormatUSTAR}
		if err := put(w, h, f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return compress(b.Bytes())
}
