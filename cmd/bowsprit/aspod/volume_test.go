package aspod

import (
	"context"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func secretVolume(name, secret string, items ...corev1.KeyToPath) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: secret, Items: items}}}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	off := false
	config := corev1.Volume{Name: "config", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("data")}}}
	info := corev1.Volume{Name: "info", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}}},
			{Secret: &corev1.SecretProjection{LocalObjectReference: named("data"),
				Items: []corev1.KeyToPath{{Key: "password", Path: "a/b"}}}},
		}}}}
	p := testPod(corev1.Container{VolumeMounts: []corev1.VolumeMount{
		{Name: "certs", MountPath: "/certs/"}, {Name: "config", MountPath: "etc/config"},
		{Name: "config", MountPath: "/etc/level", SubPath: "level"}, {Name: "info", MountPath: "/info"},
		{Name: "scratch", MountPath: "/scratch"}, {Name: "disk", MountPath: "/disk"},
		{Name: "host", MountPath: "/host"},
	}}, secretVolume("certs", "data"), config, info,
		corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		corev1.Volume{Name: "disk", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "disk"}}},
		corev1.Volume{Name: "host", VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: "/host"}}})
	p.template.Spec.AutomountServiceAccountToken = &off
	all, notes, err := p.locations()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]content{
		"/certs":      {"password": "p", "tls.crt": "one"},
		"/etc/config": {"level": "debug", "not a name": "x", "binary": "\x00\x01"},
		"/etc/level":  {"": "debug"}, "/scratch": {}, "/disk": {},
		"/info": {"labels": "app=\"web\"\nb=\"c\"", "a/b": "p"},
	}
	for _, location := range all {
		got, err := location.read(t.Context(), testObjects())
		if err != nil || !maps.Equal(got, want[location.path]) {
			t.Errorf("%s has %q, %v; want %q", location.path, got, err, want[location.path])
		}
		if location.file != (location.path == "/etc/level") {
			t.Errorf("%s: file %v", location.path, location.file)
		}
		delete(want, location.path)
	}
	if len(want) > 0 || len(notes) != 2 {
		t.Errorf("without locations: %v; notes %q", want, notes)
	}
}

// TestPlacesAttack checks that paths of a server that does not validate them lead to no file outside of the volume.
func TestPlacesAttack(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"../a", "/etc/passwd", "a/../../b", "..", "..data", "..data/a", "a\x00b", ""} {
		p := testPod(corev1.Container{VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}},
			secretVolume("v", "data", corev1.KeyToPath{Key: "password", Path: path}))
		all, _, err := p.locations()
		if err != nil {
			t.Fatal(err)
		}
		if files, err := all[0].read(t.Context(), testObjects()); err == nil {
			t.Errorf("%q: %q", path, files)
		}
	}
	for _, mounts := range [][]corev1.VolumeMount{{{Name: "v", MountPath: "/"}}, {{Name: "v", MountPath: "/../.."}},
		{{Name: "none", MountPath: "/v"}}} {
		p := testPod(corev1.Container{VolumeMounts: mounts}, secretVolume("v", "data"))
		if _, _, err := p.locations(); err == nil {
			t.Errorf("%v: no error", mounts)
		}
	}
	r := root{dir: t.TempDir()}
	if got := r.at("/a/../../../etc/passwd"); !strings.HasPrefix(got, r.dir) {
		t.Errorf("a path below %s is %s", r.dir, got)
	}
}

// TestDirectory checks the modes and the content of a directory through several changes.
func TestDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	for _, files := range []content{
		{"x": "1", "y": "2"}, {"x": "1", "y": "3"}, {"y": "3", "d/e/f": "4"}, {}, {"d": "a file now"},
		{"d/e": "a directory now"},
	} {
		if err := writeDirectory(dir, files); err != nil {
			t.Fatal(err)
		}
		checkDirectory(t, dir, files)
	}
}

func checkDirectory(t *testing.T, dir string, want content) {
	t.Helper()
	for name, data := range want {
		file := filepath.Join(dir, name)
		got, err := os.ReadFile(file)
		if err != nil || string(got) != data {
			t.Errorf("%s: %q, %v; want %q", name, got, err, data)
		}
	}
	var hidden []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if e.Type()&fs.ModeSymlink == 0 && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if filepath.Dir(path) == dir {
			hidden = append(hidden, e.Name())
		}
		return nil
	})
	top := map[string]bool{"..data": true}
	for name := range want {
		first, _, _ := strings.Cut(name, "/")
		top[first] = true
	}
	hidden = slices.DeleteFunc(hidden, func(name string) bool {
		return strings.HasPrefix(name, "..files-") || top[name]
	})
	if err != nil || len(hidden) > 0 {
		t.Errorf("left: %q, %v", hidden, err)
	}
}

// TestFollow checks that a directory waits for its object, follows a change, and keeps its files without the object.
func TestFollow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	client := testObjects()
	secrets := client.CoreV1().Secrets("team")
	synctest.Test(t, func(t *testing.T) {
		p := testPod(corev1.Container{VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}},
			secretVolume("v", "later"))
		off := false
		p.template.Spec.AutomountServiceAccountToken = &off
		locations, _, err := p.locations()
		if err != nil {
			t.Fatal(err)
		}
		f := &files{client: client, notes: io.Discard, locations: locations,
			root: root{dir: dir, prepare: func(string, bool) error { return nil }}}
		ctx, cancel := context.WithCancel(t.Context())
		followed := make(chan struct{})
		go func() {
			defer close(followed)
			if err := f.fill(ctx); err != nil {
				t.Error(err)
			}
			f.follow(ctx)
		}()
		time.Sleep(5 * time.Second) // of the bubble
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "later"},
			Data: map[string][]byte{"a": []byte("1")}}
		if _, err := secrets.Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		checkDirectory(t, filepath.Join(dir, "v"), content{"a": "1"})
		secret.Data = map[string][]byte{"b": []byte("2")}
		if _, err := secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		checkDirectory(t, filepath.Join(dir, "v"), content{"b": "2"})
		if err := secrets.Delete(ctx, "later", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		checkDirectory(t, filepath.Join(dir, "v"), content{"b": "2"})
		cancel()
		<-followed
	})
}
