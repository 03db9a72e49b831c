package storageversion

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/aggregation"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

// onDemand are the built-in kinds with StorageVersions.
func onDemand(t *testing.T, resources []*catalog.Resource) []*catalog.Resource {
	t.Helper()
	config := kinds.RuntimeConfig{
		"internal.apiserver.k8s.io/v1alpha1": "true",
		"apiextensions.k8s.io/v1beta1":       "false", // as kube-apiserver
	}
	var open []string
	for _, name := range kinds.Features() {
		if (kinds.Emulation{}).Has(name, nil) {
			open = append(open, name)
		}
	}
	if _, err := config.Apply(resources, kinds.Emulation{}, open...); err != nil {
		t.Fatal(err)
	}
	return resources
}

// TestEntriesOfKube checks that the entry of each resource equals kube-apiserver's, except for some old decodable
// versions.
func TestEntriesOfKube(t *testing.T) {
	t.Parallel()
	resources := aggregation.Part(aggregation.Settings{}).Resources(nil, onDemand(t, kinds.Resources()))
	snap := catalog.New(resources...).Snapshot()
	got := map[string]entry{}
	snap.Resources(func(r *catalog.Resource) {
		if hasEntry(r) {
			got[nameOf(r)] = entryOf("a", r, snap)
		}
	})
	text, err := os.ReadFile("testdata/kube-apiserver.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Split(strings.TrimSpace(line), "\t")
		e, decodable := got[words[0]], strings.Split(words[3], ",")
		delete(got, words[0])
		if e.EncodingVersion != words[1] || strings.Join(e.ServedVersions, ",") != words[2] {
			t.Errorf("%s: %+v", words[0], e)
		}
		known := slices.DeleteFunc(decodable, func(v string) bool { return !slices.Contains(e.DecodableVersions, v) })
		if !slices.Equal(known, e.DecodableVersions) || !slices.Contains(known, e.EncodingVersion) {
			t.Errorf("%s: decodes %q, of kube's %q", words[0], e.DecodableVersions, known)
		}
	}
	for name := range got {
		t.Errorf("kube-apiserver has no %s", name)
	}
}

// The condition has another time when its status changes, or when all agree on another version than before.
func TestSummarize(t *testing.T) {
	t.Parallel()
	v := &apiserverinternalv1alpha1.StorageVersion{}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, step := range []struct {
		versions       string // of the servers
		common, reason string
		moved          bool
	}{
		{"v1", "v1", "CommonEncodingVersionSet", true},
		{"v1 v1", "v1", "CommonEncodingVersionSet", false},
		{"v2 v1", "", "CommonEncodingVersionUnset", true},
		{"v2 v3", "", "CommonEncodingVersionUnset", false},
		{"v2 v2", "v2", "CommonEncodingVersionSet", true},
		{"v3", "v3", "CommonEncodingVersionSet", true},
		{"", "", "CommonEncodingVersionUnset", true},
	} {
		v.Status.StorageVersions = nil
		for n, version := range strings.Fields(step.versions) {
			e := entry{APIServerID: string(rune('a' + n)), EncodingVersion: version}
			if !put(&v.Status, e) || put(&v.Status, e) {
				t.Errorf("%d: an entry is not put once", i)
			}
		}
		now := metav1.NewTime(at.Add(time.Duration(i) * time.Hour))
		summarize(v, now)
		common := ""
		if v.Status.CommonEncodingVersion != nil {
			common = *v.Status.CommonEncodingVersion
		}
		c := v.Status.Conditions
		if common != step.common || len(c) != 1 || c[0].Reason != step.reason ||
			c[0].LastTransitionTime.Equal(&now) != step.moved {
			t.Errorf("%d: %q, %+v", i, common, c)
		}
	}
}
