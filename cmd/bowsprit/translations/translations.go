// Package translations keeps kubectl's texts in other languages out of processes that do not run kubectl. kubectl's
// packages load them during initialization, which takes a seventh of the CPU time of a server's start.
//
// It works because it imports no package that requests a text, and because Go initializes ready packages in the order
// of their paths: ours come before the paths of k8s.io.
package translations

import (
	"os"
	"path/filepath"
	"strings"

	"k8s.io/kubectl/pkg/util/i18n"
)

func init() {
	if wanted(os.Args) {
		return
	}
	if err := i18n.SetLoadTranslationsFunc(func() error { return nil }); err != nil {
		panic(err)
	}
}

// wanted reports whether a process with these arguments runs kubectl: by a link of that name, or as the subcommand.
func wanted(argv []string) bool {
	const kubectl = "kubectl"
	return len(argv) > 0 && strings.TrimSuffix(filepath.Base(argv[0]), ".exe") == kubectl ||
		len(argv) > 1 && argv[1] == kubectl
}
