package main

import (
	"bytes"
	"crypto/sha512"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestChart checks the form that Helm requires: all files below one folder, and the version of the release.
func TestChart(t *testing.T) {
	t.Parallel()
	files, _ := untar(t, unzip(t, made(t).read(t, "bowsprit-chart-1.2.3.tgz")))
	chart := string(files["bowsprit/Chart.yaml"])
	if !strings.Contains(chart, "\nversion: 1.2.3\n") || !strings.Contains(chart, "\nappVersion: \"v1.2.3\"\n") {
		t.Errorf("Chart.yaml:\n%s", chart)
	}
	for name := range files {
		if !strings.HasPrefix(name, "bowsprit/") {
			t.Errorf("%s is not below bowsprit", name)
		}
	}
	if len(files["bowsprit/values.yaml"]) == 0 || len(files["bowsprit/templates/_helpers.tpl"]) == 0 {
		t.Errorf("%d files", len(files))
	}
	for version, want := range map[string]string{"v1.2.3-rc.1": "1.2.3-rc.1", "abc~1": "0.0.0-abc-1"} {
		if got := (&release{version: version}).chartVersion(); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
}

// TestEnvtest checks that the index names each archive with its checksum and its URL, and that an archive has the
// program and the scripts that envtest starts.
func TestEnvtest(t *testing.T) {
	t.Parallel()
	r := made(t)
	version, err := r.kubernetes()
	if err != nil {
		t.Fatal(err)
	}
	index := string(r.read(t, "envtest-releases.yaml"))
	for _, platform := range []string{"linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"} {
		name := "envtest-" + version + "-" + platform + ".tar.gz"
		want := fmt.Sprintf("    %s:\n      hash: %x\n      selfLink: %s/releases/download/v1.2.3/%s\n", name,
			sha512.Sum512(r.read(t, name)), homepage, name)
		if !strings.Contains(index, want) {
			t.Errorf("%s is not in the index:\n%s", want, index)
		}
	}
	if strings.Contains(index, "windows") || !strings.HasPrefix(index, "releases:\n  "+version+":\n") {
		t.Errorf("the index:\n%s", index)
	}
	files, headers := untar(t, unzip(t, r.read(t, "envtest-"+version+"-linux-amd64.tar.gz")))
	var names []string
	for name, h := range headers {
		names = append(names, filepath.Base(name))
		if h.Mode != 0o755 {
			t.Errorf("%s: mode %o", name, h.Mode)
		}
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "bowsprit etcd kube-apiserver kubectl" {
		t.Errorf("files: %s", got)
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "kubectl")
	for file, text := range map[string][]byte{
		script: files["controller-tools/envtest/kubectl"], filepath.Join(dir, "bowsprit"): []byte("#!/bin/sh\necho \"$@\"\n"),
	} {
		if err := os.WriteFile(file, text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(script, "get", "two words").CombinedOutput()
	if err != nil || !bytes.Equal(out, []byte("kubectl get two words\n")) {
		t.Errorf("the script starts %q: %v", out, err)
	}
}
