package main

import (
	"strings"
	"sync/atomic"
	_ "unsafe" // for linkname

	"github.com/bowsprit/bowsprit"
)

// Kubernetes' build stamps its version into these variables with the linker. "go build" and "go install" build this
// program without such stamps, so it sets the variables itself, and kubectl reports them. The design page on private
// symbols describes the repair when a variable disappears and the link fails.

//go:linkname kubectlVersion k8s.io/component-base/version.gitVersion
var kubectlVersion string

// kubectlDynamic holds a copy of the version. Init makes that copy.
//
//go:linkname kubectlDynamic k8s.io/component-base/version.dynamicGitVersion
var kubectlDynamic atomic.Value

//go:linkname kubectlMajor k8s.io/component-base/version.gitMajor
var kubectlMajor string

//go:linkname kubectlMinor k8s.io/component-base/version.gitMinor
var kubectlMinor string

//go:linkname kubectlCommit k8s.io/component-base/version.gitCommit
var kubectlCommit string

//go:linkname clientVersion k8s.io/client-go/pkg/version.gitVersion
var clientVersion string

//go:linkname clientCommit k8s.io/client-go/pkg/version.gitCommit
var clientCommit string

// stampKubectl makes kubectl report the version of Kubernetes that the server implements.
func stampKubectl() {
	info := bowsprit.Version()
	kubectlVersion, clientVersion = "v"+info.Kubernetes, "v"+info.Kubernetes
	major, minor, _ := strings.Cut(info.Kubernetes, ".")
	minor, _, _ = strings.Cut(minor, ".")
	kubectlMajor, kubectlMinor = major, minor
	kubectlCommit, clientCommit = "", ""
	kubectlDynamic.Store(kubectlVersion)
}
