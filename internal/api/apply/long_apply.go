package apply

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Apply is server-side apply: it returns live with the fields of applied, without fields that name applied before and
// omits now, and with updated managedFields. live is nil if the object does not exist. Both are read only; the result
// may share parts of them. If nothing changes, the result equals live.
//
// Conflicts with other managers are a *apierrors.StatusError (409) unless force takes the fields over; so are invalid
// requests (400). The result is not pruned or defaulted: the caller does that.
func (o *Ownership) Apply(live, applied map[string]any, name string, force bool, now time.Time) (map[string]any,
	error) {
	if err := o.checkApplied(applied); err != nil {
		return nil, err
	}
	if live == nil {
		live = o.empty()
	}
	if result, ok := o.applyShort(live, applied, name, force, now); ok {
		return result, nil
	}
	return o.applyLong(live, applied, name, force, now)
}

func (o *Ownership) applyLong(live, applied map[string]any, name string, force bool, now time.Time) (map[string]any,
	error) {
	m, err := decodeEntries(entriesOf(live))
	if err != nil {
		return nil, fmt.Errorf("failed to decode managed fields: %w", err)
	}
	result, m, err := o.applyOver(live, applied, m, name, force, now)
	if err != nil {
		if conflicts, ok := err.(merge.Conflicts); ok {
			return nil, conflictError(conflicts)
		}
		return nil, err
	}
	if name == kubectl {
		if err := refreshLastApplied(result, applied); err != nil {
			return nil, err
		}
	}
	entries, err := m.encode()
	if err != nil {
		return nil, err
	}
	setManagedFields(result, entries)
	return result, nil
}

// checkApplied refuses an applied configuration of another kind or version.
func (o *Ownership) checkApplied(applied map[string]any) error {
	apiVersion, _ := applied["apiVersion"].(string)
	kind, _ := applied["kind"].(string)
	if apiVersion != o.apiVersion || kind != o.kind {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid object type: %v", kindOf(applied)))
	}
	return nil
}

// applyOver runs one apply. kubectl's first server-side apply after client-side ones is forced for their fields.
func (o *Ownership) applyOver(
	live, applied map[string]any, m *managed, name string, force bool, now time.Time,
) (map[string]any, *managed, error) {
	result, after, err := o.applyOnce(live, applied, m, name, force, now)
	conflicts, conflicting := err.(merge.Conflicts)
	if name != kubectl || !conflicting {
		return result, after, err
	}
	allowed, lastErr := o.lastApplied(live)
	if lastErr != nil {
		return nil, nil, err
	}
	var rest merge.Conflicts
	for _, c := range conflicts {
		if !allowed.Has(c.Path) {
			rest = append(rest, c)
		}
	}
	if len(rest) > 0 {
		return nil, nil, rest
	}
	return o.applyOnce(live, applied, m, name, true, now)
}

func (o *Ownership) applyOnce(
	live, applied map[string]any, m *managed, name string, force bool, now time.Time,
) (map[string]any, *managed, error) {
	m = m.clone()
	if len(m.fields) == 0 {
		// The writers of existing fields are unknown; these fields get a separate owner.
		var err error
		if m, err = o.update(nil, live, m, beforeFirstApply, now); err != nil {
			return nil, nil, fmt.Errorf("failed to create manager for existing fields: %w", err)
		}
	}
	if entriesOf(applied) != nil {
		return nil, nil, apierrors.NewBadRequest("metadata.managedFields must be nil")
	}
	appliedTyped, err := o.typed(applied)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to create typed patch object (%s): %w", o.describe(applied), err)
	}
	liveTyped, err := o.typed(live, typed.AllowDuplicates)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to create typed live object (%s): %w", o.describe(live), err)
	}
	id := o.manager(name, metav1.ManagedFieldsOperationApply).id()
	restore := o.unserved(m)
	newTyped, fields, err := o.updater().Apply(liveTyped, appliedTyped, fieldpath.APIVersion(o.apiVersion), m.fields,
		id, force)
	if err != nil {
		return nil, nil, err
	}
	m = &managed{fields: fields, times: m.times}
	restore(m)
	m.strip(id)
	if newTyped == nil {
		result := copyObject(live)
		setManagedFields(result, nil)
		return result, m, nil
	}
	result, ok := newTyped.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, nil,
			fmt.Errorf("failed to convert new typed object (%s) to object: it is %T", o.describe(applied),
				newTyped.AsValue().Unstructured())
	}
	m.times[id] = &metav1.Time{Time: now.UTC()}
	// The merged object consists of parts of live and applied, and the caller changes it afterwards.
	return runtime.DeepCopyJSON(result), m, nil
}
