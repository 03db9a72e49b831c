package main

import (
	"bytes"
	"crypto/sha512"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// kubernetesModule names the version of Kubernetes in go.mod: v0.36.3 is 1.36.3.
var kubernetesModule = regexp.MustCompile(`(?m)^\s*k8s\.io/apimachinery v0\.([0-9]+\.[0-9]+)$`)

// kubernetes is the version of Kubernetes that the server is: setup-envtest chooses by it.
func (r *release) kubernetes() (string, error) {
	text, err := os.ReadFile(filepath.Join(r.root, "go.mod"))
	if err != nil {
		return "", err
	}
	m := kubernetesModule.FindSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("go.mod does not say which k8s.io/apimachinery is used")
	}
	return "v1." + string(m[1]), nil
}

// dropIns are the programs that envtest starts. They are scripts next to the program: setup-envtest unpacks neither
// links nor folders, and three copies of the program would need three times the space.
var dropIns = []string{"kube-apiserver", "etcd", "kubectl"}

const dropIn = "#!/bin/sh\nexec \"${0%%/*}/bowsprit\" %s \"$@\"\n"

// envtest makes the archive that setup-envtest downloads for a platform: envtest-v1.36.3-linux-amd64.tar.gz.
func (r *release) envtest(t target, program []byte) error {
	if t.os == "windows" { // has no scripts of this kind
		return nil
	}
	version, err := r.kubernetes()
	if err != nil {
		return err
	}
	const dir = "controller-tools/envtest"
	files := []entry{{name: path.Join(dir, "bowsprit"), data: program, mode: 0o755}}
	for _, name := range dropIns {
		files = append(files, entry{name: path.Join(dir, name), data: fmt.Appendf(nil, dropIn, name), mode: 0o755})
	}
	data, err := r.plain(sorted(files))
	if err != nil {
		return err
	}
	return r.write("envtest-"+version+"-"+t.os+"-"+t.arch+".tar.gz", data)
}

// envtestIndex makes the index for setup-envtest --index: the archives, their URLs, and their checksums.
func (r *release) envtestIndex() error {
	version, err := r.kubernetes()
	if err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(r.out, "envtest-v*.tar.gz"))
	if err != nil || len(archives) == 0 {
		return err
	}
	slices.Sort(archives)
	var b bytes.Buffer
	fmt.Fprintf(&b, "releases:\n  %s:\n", version)
	for _, file := range archives {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name := filepath.Base(file)
		fmt.Fprintf(&b, "    %s:\n      hash: %x\n      selfLink: %s/%s\n", name, sha512.Sum512(data),
			strings.TrimSuffix(r.downloadURL(), "/"), name)
	}
	return r.write("envtest-releases.yaml", b.Bytes())
}

// downloadURL is the address where the files of the release will be.
func (r *release) downloadURL() string {
	if r.url != "" {
		return r.url
	}
	return homepage + "/releases/download/" + r.version
}
