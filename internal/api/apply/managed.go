package apply

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// manager identifies an entry of managedFields. An applier is one manager, whatever the version of its applies.
type manager struct {
	name        string
	operation   metav1.ManagedFieldsOperationType
	apiVersion  string // "" for appliers
	subresource string
}

// id is the form that structured-merge-diff uses as key; conflicts name their managers by it.
func (m manager) id() string {
	raw, err := json.Marshal(m.entry())
	if err != nil {
		panic(err) // strings only
	}
	return string(raw)
}

func (m manager) entry() metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: m.name, Operation: m.operation, APIVersion: m.apiVersion, Subresource: m.subresource,
	}
}

// managerOf is the inverse of id.
func managerOf(id string) manager {
	var e metav1.ManagedFieldsEntry
	_ = json.Unmarshal([]byte(id), &e) // made by id
	return manager{e.Manager, e.Operation, e.APIVersion, e.Subresource}
}

// managed is a decoded managedFields: the managers with their fields and times.
type managed struct {
	fields fieldpath.ManagedFields
	times  map[string]*metav1.Time
}

func noManagers() *managed {
	return &managed{fields: fieldpath.ManagedFields{}, times: map[string]*metav1.Time{}}
}

// entriesOf reads metadata.managedFields of an object, leniently: a value other than a list of entries counts as absent
// (nil).
func entriesOf(obj map[string]any) []metav1.ManagedFieldsEntry {
	return (&unstructured.Unstructured{Object: obj}).GetManagedFields()
}

func decodeEntries(entries []metav1.ManagedFieldsEntry) (*managed, error) {
	m := noManagers()
	for i, e := range entries {
		switch {
		case e.Operation != metav1.ManagedFieldsOperationApply && e.Operation != metav1.ManagedFieldsOperationUpdate:
			return nil, fmt.Errorf("operation must be `Apply` or `Update`")
		case e.APIVersion == "":
			return nil, fmt.Errorf("apiVersion must not be empty")
		case e.FieldsType == "":
			return nil, fmt.Errorf("missing fieldsType in managed fields entry %d", i)
		case e.FieldsType != "FieldsV1":
			return nil, fmt.Errorf("invalid fieldsType %q in managed fields entry %d", e.FieldsType, i)
		}
		raw := []byte("{}")
		if e.FieldsV1 != nil {
			raw = e.FieldsV1.GetRawBytes()
		}
		var set fieldpath.Set
		if err := set.FromJSON(bytes.NewReader(raw)); err != nil {
			return nil, fmt.Errorf("error decoding versioned set from %v: error decoding set: %v", e, err)
		}
		key := manager{e.Manager, e.Operation, e.APIVersion, e.Subresource}
		if e.Operation == metav1.ManagedFieldsOperationApply {
			key.apiVersion = ""
		}
		m.fields[key.id()] = fieldpath.NewVersionedSet(&set, fieldpath.APIVersion(e.APIVersion),
			e.Operation == metav1.ManagedFieldsOperationApply)
		m.times[key.id()] = e.Time
	}
	return m, nil
}

// ValidateManagedFields returns the error in a client's managedFields; nil if they are valid.
func ValidateManagedFields(entries []metav1.ManagedFieldsEntry) error {
	_, err := decodeEntries(entries)
	return err
}

// requested chooses the managers that an update starts from: the new object's, if valid, otherwise the live
// object's, so that clients that ignore managedFields cannot delete them. A list of one empty entry, or an empty list,
// requests a fresh start.
func requested(live, obj map[string]any, subresource string) *managed {
	if subresource == "" {
		entries := entriesOf(obj)
		if entries != nil && len(entries) == 0 || len(entries) == 1 &&
			reflect.DeepEqual(entries[0], metav1.ManagedFieldsEntry{}) {
			return noManagers()
		}
		if m, err := decodeEntries(entries); err == nil && len(m.fields) > 0 {
			return m
		}
	}
	m, err := decodeEntries(entriesOf(live))
	if err != nil {
		return noManagers()
	}
	return m
}

// encode returns the managers as metadata.managedFields, decoded JSON; nil if there are none.
func (m *managed) encode() ([]any, error) {
	if len(m.fields) == 0 {
		return nil, nil
	}
	entries := make([]map[string]any, 0, len(m.fields))
	for id, set := range m.fields {
		raw, err := set.Set().ToJSON()
		if err != nil {
			return nil, fmt.Errorf("encode fields of %s: %w", id, err)
		}
		fields := map[string]any{}
		if err := json.Unmarshal(raw, &fields); err != nil {
			return nil, fmt.Errorf("encode fields of %s: %w", id, err)
		}
		entries = append(entries, entry(managerOf(id), string(set.APIVersion()), m.times[id], fields))
	}
	return sorted(entries), nil
}

// entry returns one element of managedFields, decoded JSON. fields becomes a part of it.
func entry(m manager, apiVersion string, at *metav1.Time, fields map[string]any) map[string]any {
	e := map[string]any{"operation": string(m.operation), "fieldsType": "FieldsV1", "fieldsV1": fields}
	if apiVersion != "" {
		e["apiVersion"] = apiVersion
	}
	if m.name != "" {
		e["manager"] = m.name
	}
	if at != nil {
		e["time"] = timestamp(at.Time)
	}
	if m.subresource != "" {
		e["subresource"] = m.subresource
	}
	return e
}

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// sorted orders entries as kube does: appliers first, then by age, then by name.
func sorted(entries []map[string]any) []any {
	slices.SortStableFunc(entries, func(a, b map[string]any) int {
		for _, key := range []string{"operation", "time", "manager", "apiVersion", "subresource"} {
			x, _ := a[key].(string)
			y, _ := b[key].(string)
			// RFC 3339 in UTC and whole seconds sorts as text; no time sorts first either way.
			if c := strings.Compare(x, y); c != 0 {
				return c
			}
		}
		return 0
	})
	out := make([]any, len(entries))
	for i, e := range entries {
		out[i] = e
	}
	return out
}

// setManagedFields writes metadata.managedFields; nil removes it.
func setManagedFields(obj map[string]any, entries []any) {
	meta, _ := obj["metadata"].(map[string]any)
	if entries == nil {
		delete(meta, "managedFields")
		return
	}
	if meta == nil {
		meta = map[string]any{}
		obj["metadata"] = meta
	}
	meta["managedFields"] = entries
}

func (m *managed) clone() *managed {
	c := noManagers()
	for id, set := range m.fields {
		c.fields[id] = set
	}
	for id, t := range m.times {
		c.times[id] = t
	}
	return c
}

// strip removes the fields that no manager owns: identity, and fields maintained by the server.
func (m *managed) strip(id string) {
	set, ok := m.fields[id]
	if !ok {
		return
	}
	kept := set.Set().Difference(serverOwned)
	if kept.Empty() {
		delete(m.fields, id)
		return
	}
	m.fields[id] = fieldpath.NewVersionedSet(kept, set.APIVersion(), set.Applied())
}

// serverOwned are the fields that no manager owns.
var serverOwned = func() *fieldpath.Set {
	set := fieldpath.NewSet(fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"),
		fieldpath.MakePathOrDie("metadata"))
	for _, name := range serverOwnedMeta {
		set.Insert(fieldpath.MakePathOrDie("metadata", name))
	}
	return set
}()

var serverOwnedMeta = []string{"name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation",
	"managedFields", "resourceVersion"}

const (
	// maxUpdaters is how many entries of operation Update an object may have; the oldest are put together beyond that.
	maxUpdaters = 10
	// ancientChanges is the manager of the entries that were put together.
	ancientChanges = "ancient-changes"
)

// limit merges the oldest updaters of each version until at most maxUpdaters remain.
func (m *managed) limit() {
	updaters := m.updaters()
	first := map[string]string{} // the oldest updater by version, the start of its bucket
	// buckets holds the sets to add to each bucket. They are united at the end, because the cost of a union grows with
	// both of its sets.
	buckets := map[string][]*fieldpath.Set{}
	for i, left := 0, len(updaters); i < len(updaters) && left > maxUpdaters; i++ {
		id := updaters[i]
		set := m.fields[id]
		version := string(set.APIVersion())
		oldest, ok := first[version]
		if !ok {
			first[version] = id
			continue
		}
		bucket := manager{
			name: ancientChanges, operation: metav1.ManagedFieldsOperationUpdate, apiVersion: version,
		}.id()
		if _, ok := m.fields[bucket]; !ok {
			start := m.fields[oldest]
			delete(m.fields, oldest)
			m.fields[bucket] = start
		}
		buckets[bucket] = append(buckets[bucket], set.Set())
		if delete(m.fields, id); id == bucket {
			delete(buckets, bucket) // as in Kubernetes
		}
		left--
		m.times[bucket] = m.times[id]
	}
	for bucket, sets := range buckets {
		start := m.fields[bucket]
		m.fields[bucket] = fieldpath.NewVersionedSet(union(append(sets, start.Set())), start.APIVersion(),
			start.Applied())
	}
}

// updaters returns the ids of the entries of operation Update, the oldest first.
func (m *managed) updaters() []string {
	var updaters []string
	for id, set := range m.fields {
		if !set.Applied() {
			updaters = append(updaters, id)
		}
	}
	seconds := func(id string) int64 {
		if t := m.times[id]; t != nil {
			return t.Unix()
		}
		return 0
	}
	slices.SortFunc(updaters, func(a, b string) int {
		return cmp.Or(cmp.Compare(seconds(a), seconds(b)), strings.Compare(a, b))
	})
	return updaters
}

// union unites one or more sets, in pairs.
func union(sets []*fieldpath.Set) *fieldpath.Set {
	if len(sets) == 1 {
		return sets[0]
	}
	half := len(sets) / 2
	return union(sets[:half]).Union(union(sets[half:]))
}
