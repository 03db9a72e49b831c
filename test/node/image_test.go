package node

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"testing"
)

// applets are the commands of busybox that images have under their own names.
var applets = []string{"sh", "cat", "echo", "sleep", "tar", "id", "mkdir", "rm", "true", "wget", "httpd"}

// contents are the files of an image beside busybox, and its command.
type contents struct {
	entrypoint, command []string
	files               map[string]string // files of this machine, by their paths in the image
	folder              string            // folder of this machine with the root of the image
	applets             []string          // of busybox; applets, where there are none
	user                string
	setuid              string // the setuid file
}

// image writes an image, as "docker save" would.
func image(t *testing.T, file, name, busybox string, has contents) {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	header := func(h *tar.Header) {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"bin", "etc", "usr", "usr/local", "usr/local/bin"} {
		header(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755})
	}
	header(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp", Mode: 0o1777})
	own := has.applets
	if own == nil {
		own = applets
	}
	for _, applet := range own {
		header(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + applet, Linkname: "busybox"})
	}
	if has.folder != "" {
		if err := w.AddFS(os.DirFS(has.folder)); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{"bin/busybox": busybox}
	for target, source := range has.files {
		files[target] = source
	}
	for target, source := range files {
		content, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		mode := int64(0o755)
		if target == has.setuid {
			mode |= 0o6000
		}
		header(&tar.Header{Typeflag: tar.TypeReg, Name: target, Mode: mode, Size: int64(len(content))})
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	digest := sum(layer.Bytes())
	config := marshal(t, map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{
			"Entrypoint": has.entrypoint, "Cmd": has.command, "User": has.user,
			"Env": []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest}},
	})
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w = tar.NewWriter(out)
	for _, part := range []struct {
		name    string
		content []byte
	}{
		{digest + ".tar", layer.Bytes()}, {sum(config) + ".json", config},
		{"manifest.json", marshal(t, []any{map[string]any{
			"Config": sum(config) + ".json", "RepoTags": []string{name}, "Layers": []string{digest + ".tar"},
		}})},
	} {
		header(&tar.Header{Typeflag: tar.TypeReg, Name: part.name, Mode: 0o644, Size: int64(len(part.content))})
		if _, err := io.Copy(w, bytes.NewReader(part.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func sum(content []byte) string {
	hash := sha256.Sum256(content)
	return hex.EncodeToString(hash[:])
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	content, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
