// Command follow lists the changes between two releases of Kubernetes, and our files that each change affects.
//
//	follow [-root DIR] [-from 1.36.3] [-rows 300] VERSION
//
// It downloads the modules of both releases (k8s.io/kubernetes and its staging modules) with the go command, and reads
// their sources; it runs nothing of them. The release to compare with is the one in internal/front/version.go. The
// report is Markdown: a table of counts, and a table for each subject with at most -rows rows.
// docs/following-kubernetes.md describes its use.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	root := flag.String("root", "..", "the folder of the repository")
	from := flag.String("from", "", "the release to compare with (default: the one that the server behaves like)")
	rows := flag.Int("rows", 300, "the maximum number of rows for each subject")
	flag.Parse()
	if err := follow(*root, *from, flag.Arg(0), *rows); err != nil {
		fmt.Fprintln(os.Stderr, "follow:", err)
		os.Exit(1)
	}
}

func follow(root, from, to string, rows int) error {
	if !release.MatchString(to) {
		return errors.New("name a release of Kubernetes, such as make follow VERSION=1.38.0")
	}
	if from == "" {
		data, err := os.ReadFile(filepath.Join(root, "internal/front/version.go"))
		if err != nil {
			return err
		}
		found := served.FindSubmatch(data)
		if found == nil {
			return errors.New("internal/front/version.go names no release: use -from")
		}
		from = string(found[1])
	}
	before, err := download(from)
	if err != nil {
		return err
	}
	after, err := download(to)
	if err != nil {
		return err
	}
	report, err := compare(before, after, root)
	if err != nil {
		return err
	}
	_, err = os.Stdout.WriteString(report.markdown(from, to, rows))
	return err
}

var (
	release = regexp.MustCompile(`^1\.\d+\.\d+(-[a-z0-9.]+)?$`)
	served  = regexp.MustCompile(`Kubernetes = "v(1\.[^"]+)"`)
)

// staging are the modules beside k8s.io/kubernetes that have an API server's behaviour.
var staging = []string{
	"api", "apimachinery", "apiserver", "apiextensions-apiserver", "kube-aggregator", "component-base",
	"pod-security-admission",
}

// tree holds the folders of a release's modules, by the last element of the module's path.
type tree map[string]string

// download returns the modules of a release. The go command verifies them, and keeps them in its cache.
func download(version string) (tree, error) {
	arguments := []string{"mod", "download", "-json", "k8s.io/kubernetes@v" + version}
	for _, name := range staging {
		arguments = append(arguments, "k8s.io/"+name+"@v0."+strings.TrimPrefix(version, "1."))
	}
	c := exec.Command("go", arguments...)
	c.Dir, c.Env = os.TempDir(), append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := c.Output()
	all, decoder := tree{}, json.NewDecoder(strings.NewReader(string(out)))
	for decoder.More() {
		var module struct{ Path, Dir, Error string }
		if err := decoder.Decode(&module); err != nil {
			return nil, fmt.Errorf("go mod download: %w", err)
		}
		if module.Error != "" {
			return nil, fmt.Errorf("go mod download: %s", module.Error)
		}
		all[filepath.Base(module.Path)] = module.Dir
	}
	if err != nil {
		return nil, fmt.Errorf("go mod download: %w", err)
	}
	return all, nil
}
