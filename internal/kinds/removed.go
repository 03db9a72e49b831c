package kinds

import (
	"slices"
	"strings"
)

// Removed is a version of kinds that a release of Kubernetes has removed although objects may be stored in it.
type Removed struct {
	// Release is the first release without the version, such as "1.37".
	Release        string
	Group, Version string
	// Plurals are the resources that the version had. The server still has them, in other versions.
	Plurals []string
}

// APIVersion returns the version with its group.
func (r Removed) APIVersion() string { return r.Group + "/" + r.Version }

// RemovedVersions returns the removed versions that data of the releases since 1.34 can contain, the latest last.
func RemovedVersions() []Removed {
	return []Removed{
		{Release: "1.37", Group: "scheduling.k8s.io", Version: "v1alpha2", Plurals: []string{"podgroups", "workloads"}},
	}
}

// Readable reports whether a stored object of an apiVersion can be read. It is false for versions of Kubernetes' groups
// that this release has no types of, because their fields may differ from the fields of other versions.
func Readable(apiVersion string) bool {
	group, version, ok := strings.Cut(apiVersion, "/")
	if !ok {
		group, version = "", apiVersion
	}
	versions, known := registered[group]
	return !known || slices.Contains(versions, version)
}
