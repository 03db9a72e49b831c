package verb

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// Patch applies a JSON patch, a merge patch or a strategic merge patch to the named object.
func (v *Verbs) Patch(
	ctx context.Context, c *Call, patch decode.Patch, o metav1.PatchOptions,
) (*Result, error) {
	w := v.begin(c, o.DryRun)
	own, err := w.tracker.ownership(ctx, c)
	if err != nil {
		return nil, err
	}
	validation := fieldValidation(o.FieldValidation)
	patch.Into, patch.Sensitive = c.Version.New, c.Secrecy.Fields
	return w.edit(ctx, updateOptionsOf(o), func(_ *watchcache.Entry, old object.Object) (object.Object, error) {
		shown := c.Secrecy.Shown(old)
		obj, problems, err := patch.ApplyTo(ctx, shown, validation)
		if err != nil {
			return nil, err
		}
		more, err := v.normalizePatched(c, patch.Type, obj)
		if err != nil {
			if refused := refusedQuantity(c, obj, err); refused != nil {
				return nil, refused
			}
			return nil, patch.Invalid(ctx, shown, err.Error())
		}
		if problems = append(problems, more...); len(problems) > 0 {
			if validation == metav1.FieldValidationStrict {
				return nil, patch.Invalid(ctx, shown, decode.StrictText(problems))
			}
			if validation == metav1.FieldValidationWarn {
				decode.Warn(ctx, problems)
			}
		}
		if err := matches(c, obj); err != nil {
			return nil, err
		}
		if err := unmask(c, obj, old); err != nil {
			return nil, err
		}
		w.tracker.track(own, old, obj, manager(c, o.FieldManager))
		return obj, nil
	})
}

// updateOptionsOf returns the options of the update that a patch becomes.
func updateOptionsOf(o metav1.PatchOptions) metav1.UpdateOptions {
	return metav1.UpdateOptions{DryRun: o.DryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation}
}

// normalizePatched is normalize for the result of a patch.
func (v *Verbs) normalizePatched(c *Call, kind types.PatchType, obj object.Object) ([]string, error) {
	if c.Version.New == nil {
		if meta, ok := obj["metadata"].(object.Object); ok {
			if entries, ok := meta["managedFields"].([]any); ok && len(entries) == 0 {
				delete(meta, "managedFields") // a patch does not end tracking of a custom object
			}
		}
		return normalize(c, obj)
	}
	if kind == types.StrategicMergePatchType { // in Kubernetes the Go type decides the kind
		obj["kind"], obj["apiVersion"] = c.Resource.Kind, c.APIVersion()
	} else if why := v.decoder.Unlike(decode.KindOf(obj), c.Kind()); why != nil {
		return nil, why
	}
	return normalize(c, obj)
}
