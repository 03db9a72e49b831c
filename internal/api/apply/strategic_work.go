package apply

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/request/invalid"
)

// maxComparisons bounds the comparisons of elements in one strategic merge patch. The library merges and sorts lists by
// comparing all elements with each other; so many comparisons take between one and three seconds.
const maxComparisons = 400_000_000

// orderPrefix begins the name of a directive with the order of a list.
const orderPrefix = "$setElementOrder/"

// merging counts the comparisons of a strategic merge patch before the library makes them.
type merging struct{ comparisons int64 }

// checkMerging refuses a patch whose lists take too long to merge: a 422 with the path of the list. The cost of the
// check is linear in the sizes of both.
func checkMerging(original, patch map[string]any, meta strategicpatch.LookupPatchMeta) error {
	if err := new(merging).object(original, patch, meta, nil); err != nil {
		return invalid.New(schema.GroupKind{}, "", field.ErrorList{err})
	}
	return nil
}

func (m *merging) object(
	original, patch map[string]any, meta strategicpatch.LookupPatchMeta, path *field.Path,
) *field.Error {
	if _, whole := patch["$patch"]; whole { // replaces or deletes the object
		return nil
	}
	for key, value := range patch {
		name, isOrder := strings.CutPrefix(key, orderPrefix)
		if !isOrder && strings.HasPrefix(key, "$") {
			continue
		}
		var err *field.Error
		switch value := value.(type) {
		case map[string]any:
			if old, ok := original[key].(map[string]any); ok {
				if inner, _, unknown := meta.LookupPatchMetadataForStruct(key); unknown == nil {
					err = m.object(old, value, inner, path.Child(key))
				}
			}
		case []any:
			old, _ := original[name].([]any)
			change := lists{old: old, order: value, path: path.Child(name)}
			if change.patch, _ = patch[name].([]any); !isOrder {
				change.order, _ = patch[orderPrefix+name].([]any)
				if len(old) == 0 || len(change.order) > 0 { // added, or counted with the order
					continue
				}
			}
			if inner, how, unknown := meta.LookupPatchMetadataForSlice(name); unknown == nil {
				change.how, change.meta = how, inner
				err = m.lists(change)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lists are the lists that meet at a path.
type lists struct {
	old, patch, order []any
	how               strategicpatch.PatchMeta
	meta              strategicpatch.LookupPatchMeta // of the elements
	path              *field.Path
}

func (m *merging) lists(l lists) *field.Error {
	merged := slices.Contains(l.how.GetPatchStrategies(), "merge")
	if !merged && l.order == nil {
		return nil
	}
	weight := int64(1)
	if l.how.GetPatchMergeKey() != "" {
		weight = 4 // two look-ups in maps
	}
	old, added, order := int64(len(l.old)), int64(len(l.patch)), int64(len(l.order))
	all := old + added
	n := sorting(old, old) + sorting(added, added) + all*(all+order) + sorting(min(all, order), order)
	if m.comparisons += weight * n; m.comparisons > maxComparisons {
		return field.Invalid(l.path, field.OmitValueType{}, fmt.Sprintf("merging the %d elements of the patch with %d "+
			"elements would take too long: send fewer elements, or a JSON patch or merge patch",
			max(added, order), old))
	}
	return m.elements(l)
}

// sorting returns the comparisons to sort n elements by the order of a list.
func sorting(n, order int64) int64 {
	return n * int64(bits.Len64(uint64(n))) * order //nolint:gosec // a length
}

// elements counts the lists within the elements that the patch changes.
func (m *merging) elements(l lists) *field.Error {
	key := l.how.GetPatchMergeKey()
	if key == "" {
		return nil
	}
	at := make(map[any]map[string]any, len(l.old))
	for _, e := range l.old {
		e, ok := e.(map[string]any)
		if !ok || !isScalar(e[key]) {
			continue
		}
		if at[e[key]] == nil {
			at[e[key]] = e
		}
	}
	for i, e := range l.patch {
		e, ok := e.(map[string]any)
		if !ok || !isScalar(e[key]) || at[e[key]] == nil {
			continue
		}
		if err := m.object(at[e[key]], e, l.meta, l.path.Index(i)); err != nil {
			return err
		}
	}
	return nil
}
