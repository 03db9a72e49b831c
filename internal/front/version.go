package front

import (
	"runtime"
	"strings"

	"k8s.io/apimachinery/pkg/version"
)

// Kubernetes is the release of the served API. Clients choose their features by it.
const Kubernetes = "v1.37.2"

// Emulation is the release of Kubernetes that the server emulates.
type Emulation struct {
	// Version is that release ("1.36"), MinCompatibility the oldest one that it can share its store with.
	Version, MinCompatibility string
}

// Build is the version of Bowsprit; the zero value is a build from a working tree.
type Build struct {
	Version   string // "0.1.0"; the build part of the version (semver.org), which comparisons ignore
	Commit    string
	TreeState string // "clean" or "dirty"
	Date      string // RFC 3339, UTC
}

// VersionInfo returns the content of /version.
func VersionInfo(b Build, e Emulation) version.Info {
	gitVersion := Kubernetes + "+bowsprit"
	if b.Version != "" {
		gitVersion += "." + b.Version
	}
	major, minor, _ := strings.Cut(e.Version, ".")
	oldMajor, oldMinor, _ := strings.Cut(e.MinCompatibility, ".")
	return version.Info{
		Major: "1", Minor: "37",
		EmulationMajor: major, EmulationMinor: minor,
		MinCompatibilityMajor: oldMajor, MinCompatibilityMinor: oldMinor,
		GitVersion: gitVersion, GitCommit: b.Commit, GitTreeState: b.TreeState, BuildDate: b.Date,
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}
