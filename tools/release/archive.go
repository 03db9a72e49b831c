package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"path"
	"slices"
	"strings"
	"time"
)

// archive makes bowsprit_<version>_<os>_<arch>.tar.gz, or .zip for Windows.
func (r *release) archive(t target, program []byte) error {
	files := sorted(append([]entry{{name: t.binary(), data: program, mode: 0o755}}, r.extras.documents...))
	name := "bowsprit_" + strings.TrimPrefix(r.version, "v") + "_" + t.os + "_" + t.arch
	if t.os == "windows" {
		data, err := zipped(files, r.time)
		if err != nil {
			return err
		}
		return r.write(name+".zip", data)
	}
	data, err := tarred(files, r.time)
	if err == nil {
		data, err = compress(data)
	}
	if err != nil {
		return err
	}
	return r.write(name+".tar.gz", data)
}

// sorted puts files in the one order that archives have.
func sorted(files []entry) []entry {
	slices.SortFunc(files, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return files
}

// tarred puts files and the folders above them, which a package owns too, into a tar, as root's.
func tarred(files []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	made := map[string]bool{".": true}
	for _, f := range files {
		for _, dir := range folders(f.name) {
			if made[dir] {
				continue
			}
			made[dir] = true
			h := &tar.Header{Typeflag: tar.TypeDir, Name: "./" + dir + "/", Mode: 0o755, ModTime: at, Uname: "root",
				Gname: "root", Format: tar.FormatUSTAR}
			if err := w.WriteHeader(h); err != nil {
				return nil, err
			}
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: "./" + f.name, Mode: f.mode, Size: int64(len(f.data)),
			ModTime: at, Uname: "root", Gname: "root", Format: tar.FormatUSTAR}
		if err := put(w, h, f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// put adds one file to a tar.
func put(w *tar.Writer, h *tar.Header, data []byte) error {
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

// folders returns the parents of a name, the uppermost first.
func folders(name string) (dirs []string) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		dirs = append([]string{dir}, dirs...)
	}
	return dirs
}

// compress is gzip without a name and a time.
func compress(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

func zipped(files []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		to, err := w.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at})
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
