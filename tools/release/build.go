package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// build compiles the program without details of the machine: paths, the state of git, libraries in C.
func (r *release) build(t target, file string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid= -X github.com/bowsprit/bowsprit/internal/server/version.version="+r.version, "-o", file, "./cmd/bowsprit")
	cmd.Dir, cmd.Stderr = r.root, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOFLAGS=", "GOWORK=off",
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build for %s: %w", t, err)
	}
	return nil
}

// extras are the files besides the program, by their place in the packages of Linux.
type extras struct {
	documents []entry // of archives: LICENSE, README.md, CHANGELOG.md
	system    []entry // of packages: unit, settings, manual pages, completion
}

// entry is a file of an archive or package.
type entry struct {
	name   string // with slashes, without one at the beginning
	data   []byte
	mode   int64
	config bool // an upgrade keeps the administrator's changes
}

// collect reads and generates the files besides the program. The program for this machine writes the manual; collect
// builds that program if it is not a target.
func (r *release) collect(work string, built map[target]string) (extras, error) {
	var x extras
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		data, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return x, err
		}
		x.documents = append(x.documents, entry{name: name, data: data, mode: 0o644})
		x.system = append(x.system, entry{name: "usr/share/doc/bowsprit/" + name, data: data, mode: 0o644})
	}
	for name, target := range map[string]string{
		"bowsprit.service": "usr/lib/systemd/system/bowsprit.service", "bowsprit.yaml": "etc/bowsprit/bowsprit.yaml",
	} {
		data, err := os.ReadFile(filepath.Join(r.root, "packaging", "linux", name))
		if err != nil {
			return x, err
		}
		x.system = append(x.system, entry{target, data, 0o644, strings.HasPrefix(target, "etc/")})
	}
	here := target{runtime.GOOS, runtime.GOARCH}
	if built[here] == "" {
		built[here] = filepath.Join(work, "here", here.binary())
		if err := r.build(here, built[here]); err != nil {
			return x, err
		}
	}
	pages, err := written(built[here], filepath.Join(work, "manual"))
	x.system = append(x.system, pages...)
	return x, err
}

// written has the program write its manual, and returns its files where a system has them.
func written(program, dir string) ([]entry, error) {
	cmd := exec.Command(program, "manual", dir)
	cmd.Stderr, cmd.Env = os.Stderr, []string{"HOME=/home/you"} // no directories of this machine as defaults
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s manual: %w", program, err)
	}
	places := map[string]string{
		"bowsprit":      "usr/share/bash-completion/completions/bowsprit",
		"_bowsprit":     "usr/share/zsh/vendor-completions/_bowsprit",
		"bowsprit.fish": "usr/share/fish/vendor_completions.d/bowsprit.fish",
	}
	var files []entry
	for name, target := range places {
		data, err := os.ReadFile(filepath.Join(dir, "completion", name))
		if err != nil {
			return nil, err
		}
		files = append(files, entry{name: target, data: data, mode: 0o644})
	}
	pages, err := filepath.Glob(filepath.Join(dir, "man1", "*.1"))
	if err != nil || len(pages) == 0 {
		return nil, fmt.Errorf("no manual pages in %s: %w", dir, err)
	}
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		small, err := compress(data)
		if err != nil {
			return nil, err
		}
		name := "usr/share/man/man1/" + filepath.Base(page) + ".gz"
		files = append(files, entry{name: name, data: small, mode: 0o644})
	}
	return files, nil
}

// installed are all files of a package.
func (r *release) installed(program []byte) []entry {
	return sorted(append([]entry{{name: "usr/bin/bowsprit", data: program, mode: 0o755}}, r.extras.system...))
}
