package apply

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// updatersOf returns n updaters of two versions; each owns one label alone and shares one with all.
func updatersOf(n int) *managed {
	m := noManagers()
	for i := range n {
		version := fmt.Sprint("example.com/v", i%2)
		id := manager{
			name: fmt.Sprint("m", i), operation: metav1.ManagedFieldsOperationUpdate, apiVersion: version,
		}.id()
		set := fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "labels", fmt.Sprint("l", i)),
			fieldpath.MakePathOrDie("metadata", "labels", "all"))
		m.fields[id] = fieldpath.NewVersionedSet(set, fieldpath.APIVersion(version), false)
		m.times[id] = &metav1.Time{Time: time.Unix(int64(i), 0)}
	}
	return m
}

// TestManyUpdaters checks that the oldest updaters of each version are merged into one entry with all their fields.
func TestManyUpdaters(t *testing.T) {
	const n = 200
	m := updatersOf(n)
	m.limit()
	if len(m.fields) != maxUpdaters {
		t.Errorf("%d are left", len(m.fields))
	}
	all := fieldpath.NewSet()
	for id, set := range m.fields {
		all = all.Union(set.Set())
		if parsed := managerOf(id); parsed.name == ancientChanges &&
			(set.Set().Size() < n/2-maxUpdaters || parsed.apiVersion != string(set.APIVersion()) ||
				m.times[id] == nil) {
			t.Errorf("%s owns %d fields of %s since %v", id, set.Set().Size(), set.APIVersion(), m.times[id])
		}
	}
	if all.Size() != n+1 {
		t.Errorf("%d fields are owned, want %d", all.Size(), n+1)
	}
}

// TestCostOfManyUpdaters: twice as many updaters cost about twice the memory to put together, not four times.
func TestCostOfManyUpdaters(t *testing.T) {
	cost := func(n int) uint64 {
		m := updatersOf(n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m.limit()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if one, two := cost(1000), cost(2000); two > 3*one {
		t.Errorf("1000 updaters cost %d bytes, 2000 %d", one, two)
	}
}
