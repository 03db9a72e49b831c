// Package version holds the version of the running program, and the versions that it shows to clients. Its functions
// are safe for concurrent use.
package version

import (
	"runtime"
	"runtime/debug"
	"strings"

	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

// version is stamped by the Makefile; without it the module's version is used.
var version string

// Info holds the versions of the running program.
type Info struct {
	Bowsprit   string // such as "v0.1.0" or "devel"
	Kubernetes string // such as "1.36.3"
	Go         string // such as "go1.26.0"
	Platform   string // such as "linux/amd64"
}

// Get returns the version of the running program.
func Get() Info {
	v := version
	if v == "" {
		v = "devel"
		if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
			v = info.Main.Version
		}
	}
	return Info{
		Bowsprit: v, Kubernetes: strings.TrimPrefix(front.Kubernetes, "v"), Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// Build returns the version of Bowsprit for the pages of the server.
func Build() front.Build { return front.Build{Version: strings.TrimPrefix(Get().Bowsprit, "v")} }

// OfServer returns the answer to a request for /version.
func OfServer(e kinds.Emulation) apiversion.Info { return front.VersionInfo(Build(), Emulated(e)) }

// Emulated returns the versions of Kubernetes for the pages of the server.
func Emulated(e kinds.Emulation) front.Emulation {
	return front.Emulation{Version: e.Version.String(), MinCompatibility: e.MinCompatibility.String()}
}
