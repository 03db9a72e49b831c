// Command release makes the published files of a version of Bowsprit: archives with static binaries, .deb and .rpm
// packages, an OCI image, a bill of materials, a statement of provenance, a Homebrew formula, and the checksums of all.
// The same commit gives the same bytes, in any directory and at any time. `make release` calls it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// release is one run.
type release struct {
	root    string    // of the repository
	out     string    // directory that it fills
	version string    // such as "v0.1.0"
	commit  string    // of git, "" in a source archive
	time    time.Time // of the commit: the time of everything in archives
	targets []target
	extras  extras
	url     string // of the folder of the published files, "" for GitHub's
}

// target is a platform that binaries are for.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// binary is the name of the program there.
func (t target) binary() string {
	if t.os == "windows" {
		return "bowsprit.exe"
	}
	return "bowsprit"
}

const allTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

func main() {
	var r release
	var targets string
	flag.StringVar(&r.root, "root", ".", "the repository")
	flag.StringVar(&r.out, "out", "bin/release", "the directory to fill; its files are removed first")
	flag.StringVar(&r.version, "version", "", "the version (default: git describe)")
	flag.StringVar(&targets, "targets", allTargets, "platforms, as os/arch, with commas between them")
	flag.StringVar(&r.url, "url", "", "where the files will be published (default: the release at GitHub)")
	flag.Parse()
	if err := r.prepare(targets); err != nil {
		fail(err)
	}
	if err := r.run(); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "release:", err)
	os.Exit(1)
}

func (r *release) prepare(targets string) error {
	var err error
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	for text := range strings.SplitSeq(targets, ",") {
		system, arch, ok := strings.Cut(text, "/")
		if !ok || !strings.Contains(","+allTargets+",", ","+text+",") {
			return fmt.Errorf("-targets: %q is none of %s", text, allTargets)
		}
		r.targets = append(r.targets, target{system, arch})
	}
	r.commit, _ = r.git("rev-parse", "HEAD")
	if r.version == "" {
		if r.version, err = r.git("describe", "--tags", "--always", "--dirty"); err != nil {
			return fmt.Errorf("no git here: name the -version: %w", err)
		}
	}
	return r.dated()
}

// dated determines the time of the files: SOURCE_DATE_EPOCH, as for other tools, or the time of the commit.
func (r *release) dated() error {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		var err error
		if text, err = r.git("log", "-1", "--format=%ct"); err != nil {
			return fmt.Errorf("no git here: say the time of the sources in SOURCE_DATE_EPOCH: %w", err)
		}
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	r.time = time.Unix(seconds, 0).UTC()
	return nil
}

func (r *release) git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.root
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// number returns the version in the form of packages: it begins with a digit, and has no hyphen.
func (r *release) number() string {
	n := strings.TrimPrefix(r.version, "v")
	if n == "" || n[0] < '0' || n[0] > '9' || !strings.Contains(n, ".") {
		n = "0.0.0~" + n
	}
	return strings.ReplaceAll(n, "-", "~")
}

func (r *release) run() error {
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "bowsprit-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	built := map[target]string{}
	for _, t := range r.targets {
		file := filepath.Join(work, t.os+"-"+t.arch, t.binary())
		if err := r.build(t, file); err != nil {
			return err
		}
		built[t] = file
	}
	if r.extras, err = r.collect(work, built); err != nil {
		return err
	}
	images := map[target]string{}
	for _, t := range r.targets {
		if err := r.publish(t, built[t]); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		if t.os == "linux" {
			images[t] = built[t]
		}
	}
	return errors.Join(r.image(images), r.chart(), r.envtestIndex(), r.provenance(), r.sums())
}

// publish makes all files for one platform.
func (r *release) publish(t target, binary string) error {
	program, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	if err := r.archive(t, program); err != nil {
		return err
	}
	if err := errors.Join(r.materials(t, binary), r.envtest(t, program)); err != nil {
		return err
	}
	if t.os != "linux" {
		return nil
	}
	files := r.installed(program)
	return errors.Join(r.deb(t, files), r.rpm(t, files))
}

// write makes a file of the release and prints its name.
func (r *release) write(name string, data []byte) error {
	fmt.Printf("%10d  %s\n", len(data), name)
	return os.WriteFile(filepath.Join(r.out, name), data, 0o644)
}
