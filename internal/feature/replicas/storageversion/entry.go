package storageversion

import (
	"slices"
	"strings"

	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// entry is a server's entry in the StorageVersion of a resource.
type entry = apiserverinternalv1alpha1.ServerStorageVersion

// nameOf returns the name of the StorageVersion of a resource. The core group has a name there.
func nameOf(r *catalog.Resource) string {
	group := r.Group
	if group == "" {
		group = "core"
	}
	return group + "." + r.Plural
}

// hasEntry reports whether a resource has an entry: it is stored, is not an alias of another resource, and has a served
// version.
func hasEntry(r *catalog.Resource) bool {
	return r.Served && !r.Virtual && !r.Secondary && r.Storage != nil &&
		slices.ContainsFunc(r.Versions, func(v *catalog.Version) bool { return v.Served })
}

// entryOf returns a server's entry for a resource. Events are also decodable in the version of the other group.
func entryOf(server string, r *catalog.Resource, snap *catalog.Snapshot) entry {
	e := entry{APIServerID: server, EncodingVersion: r.APIVersion(r.Storage)}
	for _, v := range r.Versions {
		e.DecodableVersions = append(e.DecodableVersions, r.APIVersion(v))
		if v.Served {
			e.ServedVersions = append(e.ServedVersions, r.APIVersion(v))
		}
	}
	if r.Form != nil && r.Form.Version != "" {
		e.EncodingVersion = strings.TrimPrefix(r.Group+"/"+r.Form.Version, "/")
	}
	if !slices.Contains(e.DecodableVersions, e.EncodingVersion) {
		e.DecodableVersions = append(e.DecodableVersions, e.EncodingVersion)
	}
	if other := snap.Resource(r.Cohabits.Group, r.Cohabits.Resource); other != nil && other.Secondary {
		for _, v := range other.Versions {
			e.DecodableVersions = append(e.DecodableVersions, other.APIVersion(v))
		}
	}
	return e
}

// put sets the entry of e's server to e, and reports whether it has changed.
func put(s *apiserverinternalv1alpha1.StorageVersionStatus, e entry) bool {
	i := slices.IndexFunc(s.StorageVersions, func(other entry) bool { return other.APIServerID == e.APIServerID })
	switch {
	case i < 0:
		s.StorageVersions = append(s.StorageVersions, e)
	case same(s.StorageVersions[i], e):
		return false
	default:
		s.StorageVersions[i] = e
	}
	return true
}

func same(a, b entry) bool {
	return a.APIServerID == b.APIServerID && a.EncodingVersion == b.EncodingVersion &&
		slices.Equal(a.DecodableVersions, b.DecodableVersions) && slices.Equal(a.ServedVersions, b.ServedVersions)
}

// summarize sets the common version of all servers, if they agree, and its condition in the status.
func summarize(v *apiserverinternalv1alpha1.StorageVersion, now metav1.Time) {
	s := &v.Status
	before := s.CommonEncodingVersion
	s.CommonEncodingVersion = common(s.StorageVersions)
	c := apiserverinternalv1alpha1.StorageVersionCondition{
		Type: apiserverinternalv1alpha1.AllEncodingVersionsEqual, Status: apiserverinternalv1alpha1.ConditionFalse,
		ObservedGeneration: v.Generation, LastTransitionTime: now,
		Reason: "CommonEncodingVersionUnset", Message: "Common encoding version unset",
	}
	if s.CommonEncodingVersion != nil {
		c.Status, c.Reason = apiserverinternalv1alpha1.ConditionTrue, "CommonEncodingVersionSet"
		c.Message = "Common encoding version set"
	}
	i := slices.IndexFunc(s.Conditions, func(o apiserverinternalv1alpha1.StorageVersionCondition) bool {
		return o.Type == c.Type
	})
	if i < 0 {
		s.Conditions = append(s.Conditions, c)
		return
	}
	// That all agree on another version than before is a transition too: objects must be migrated.
	another := before != nil && s.CommonEncodingVersion != nil && *before != *s.CommonEncodingVersion
	if s.Conditions[i].Status == c.Status && !another {
		c.LastTransitionTime = s.Conditions[i].LastTransitionTime
	}
	s.Conditions[i] = c
}

// common returns the encoding version of all entries, nil if they differ or there are none.
func common(all []entry) *string {
	if len(all) == 0 {
		return nil
	}
	version := all[0].EncodingVersion
	for _, e := range all {
		if e.EncodingVersion != version {
			return nil
		}
	}
	return &version
}
