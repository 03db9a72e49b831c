package front

import (
	"runtime"

	"k8s.io/apimachinery/pkg/version"
)

// Kubernetes is the release whose API the server speaks. Clients choose by it what they may expect of the server.
const Kubernetes = "v1.36.3"

// API is the version of that API, for documents that describe it.
const API = "1.36"

// Build says which Bowsprit it is; the zero value is a build from a working tree.
type Build struct {
	Version   string // "0.1.0"; it becomes the build part of the version (semver.org), which comparisons ignore
	Commit    string
	TreeState string // "clean" or "dirty"
	Date      string // RFC 3339, UTC
}

// VersionInfo returns what /version answers.
func VersionInfo(b Build) version.Info {
	gitVersion := Kubernetes + "+bowsprit"
	if b.Version != "" {
		gitVersion += "." + b.Version
	}
	return version.Info{
		Major: "1", Minor: "36",
		EmulationMajor: "1", EmulationMinor: "36",
		MinCompatibilityMajor: "1", MinCompatibilityMinor: "35",
		GitVersion: gitVersion, GitCommit: b.Commit, GitTreeState: b.TreeState, BuildDate: b.Date,
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}
