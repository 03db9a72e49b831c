package lint

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// mostEtcdLinks bounds the test binaries that link etcd's server. It can only fall: a test that only needs a store
// opens storage/store/memory.
const mostEtcdLinks = 42

// TestEtcdServerLinks counts the test binaries that link etcd's server. Each takes about 1.5 s to link, and 22 MB.
func TestEtcdServerLinks(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-test", "-f", `{{.ImportPath}} {{join .Deps " "}}`, "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all, linked := 0, []string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || !strings.HasSuffix(fields[0], ".test") {
			continue
		}
		all++
		if slices.ContainsFunc(fields, func(path string) bool {
			return strings.HasPrefix(path, "go.etcd.io/etcd/server/v3/")
		}) {
			linked = append(linked, fields[0])
		}
	}
	t.Logf("%d of %d test binaries link etcd's server", len(linked), all)
	switch {
	case all < 100:
		t.Errorf("%d test binaries were found; is the pattern right?", all)
	case len(linked) > mostEtcdLinks:
		t.Errorf("%d test binaries link etcd's server, more than %d: open a store of storage/store/memory in the new "+
			"one\n%s", len(linked), mostEtcdLinks, strings.Join(linked, "\n"))
	case len(linked) < mostEtcdLinks:
		t.Errorf("%d test binaries link etcd's server: lower mostEtcdLinks from %d", len(linked), mostEtcdLinks)
	}
}
