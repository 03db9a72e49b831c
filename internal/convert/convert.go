// Package convert brings an object of one version of its kind into another.
//
// It stands between the stored bytes and the version that a request names: on reads from storage to request, on writes
// back. So far it knows the strategy None: only apiVersion changes, and what the target version's schema does not declare
// is dropped. Functions are pure and safe for concurrent use.
package convert

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/catalog"
	"github.com/bowsprit/bowsprit/internal/schema"
)

// ErrNoWebhook is the answer to a read or write in a version that only a conversion webhook could give: none is called
// yet. The version that objects are stored in works.
var ErrNoWebhook = errors.New("this version of Bowsprit does not call conversion webhooks; use the storage version")

// Convert returns obj, an object of version from, as one of version to. obj is not changed.
func Convert(r *catalog.Resource, from, to *catalog.Version, obj map[string]any) (map[string]any, error) {
	if from == to {
		return obj, nil
	}
	out := runtime.DeepCopyJSON(obj)
	return out, rename(r, from, to, out)
}

// Present brings a decoded stored object into version to, in place, as a read shows it. What is in storage gets the
// defaults of the version it was stored in and loses what that version does not declare, then it is converted.
func Present(r *catalog.Resource, to *catalog.Version, obj map[string]any) error {
	from := r.Storage
	if to != from {
		for _, v := range r.Versions {
			if r.APIVersion(v) == obj["apiVersion"] {
				from = v
			}
		}
	}
	obj["kind"] = r.Kind
	if err := restore(r, from, obj); err != nil || from == to {
		obj["apiVersion"] = r.APIVersion(to)
		return err
	}
	return rename(r, from, to, obj)
}

// restore does to a stored object what NormalizeRequest did when it was written, by today's schema.
func restore(r *catalog.Resource, v *catalog.Version, obj map[string]any) error {
	if err := schema.SalvageMetadata(obj); err != nil {
		return fmt.Errorf("metadata of a stored %s: %w", r.Kind, err)
	}
	if r.Custom() {
		repairGeneration(obj)
	}
	rules := r.RulesFor(v)
	if rules == nil || rules.Decode == nil {
		sch, err := v.Schema()
		if err != nil {
			return fmt.Errorf("schema of %s %s: %w", r.Qualified(), v.Name, err)
		}
		if sch != nil {
			sch.NormalizeStored(obj)
		}
	}
	if rules != nil && rules.Default != nil {
		rules.Default(obj)
	}
	return nil
}

// repairGeneration gives an object that was stored before generations were counted its first one, as Kubernetes does.
func repairGeneration(obj map[string]any) {
	meta, _ := obj["metadata"].(map[string]any)
	if generation, _ := meta["generation"].(int64); meta != nil && generation == 0 {
		meta["generation"] = int64(1)
	}
}

// rename is the conversion of built-in kinds, and None.
func rename(r *catalog.Resource, from, to *catalog.Version, obj map[string]any) error {
	if r.Convert != nil {
		if err := r.Convert(from, to, obj); err != nil {
			return fmt.Errorf("convert %s from %s to %s: %w", r.Kind, r.APIVersion(from), r.APIVersion(to), err)
		}
		obj["apiVersion"] = r.APIVersion(to)
		return nil
	}
	if r.WebhookConversion {
		return fmt.Errorf("conversion webhook for %s, Kind=%s failed: %w", r.APIVersion(from), r.Kind, ErrNoWebhook)
	}
	obj["apiVersion"] = r.APIVersion(to)
	sch, err := to.Schema()
	if err != nil {
		return fmt.Errorf("schema of %s %s: %w", r.Qualified(), to.Name, err)
	}
	if sch == nil {
		return nil
	}
	return sch.NormalizeConverted(obj)
}
