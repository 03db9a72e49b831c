package bowsprit

import (
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/bowsprit/bowsprit/internal/front"
)

// version is stamped by the Makefile; without it the module's version is used.
var version string

// VersionInfo holds the versions of the running program.
type VersionInfo struct {
	Bowsprit   string // such as "v0.1.0" or "devel"
	Kubernetes string // such as "1.36.3"
	Go         string // such as "go1.26.0"
	Platform   string // such as "linux/amd64"
}

// Version returns the version of the running program.
func Version() VersionInfo {
	v := version
	if v == "" {
		v = "devel"
		if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
			v = info.Main.Version
		}
	}
	return VersionInfo{
		Bowsprit: v, Kubernetes: strings.TrimPrefix(front.Kubernetes, "v"), Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}
