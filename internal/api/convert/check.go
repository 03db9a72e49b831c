package convert

import (
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request/invalid"
)

// checkIdentity refuses a converted object with another identity than the original. Texts are Kubernetes'.
func checkIdentity(in, out object.Object) error {
	before, after := unstructured.Unstructured{Object: in}, unstructured.Unstructured{Object: out}
	for _, part := range []struct {
		name      string
		sent, got string
	}{
		{"kind", before.GetKind(), after.GetKind()},
		{"name", before.GetName(), after.GetName()},
		{"namespace", before.GetNamespace(), after.GetNamespace()},
		{"UID", string(before.GetUID()), string(after.GetUID())},
	} {
		if part.sent != part.got {
			return fmt.Errorf("must have the same %s: %v != %v", part.name, part.sent, part.got)
		}
	}
	return nil
}

// restoreMetadata gives a converted object the original's metadata, except for labels and annotations: a webhook may
// change only these.
func restoreMetadata(original, converted object.Object) error {
	v, found := converted["metadata"]
	if !found {
		return fmt.Errorf("missing metadata in converted object")
	}
	theirs, ok := v.(object.Object)
	if !ok {
		return fmt.Errorf("invalid metadata of type %T in converted object", v)
	}
	meta := object.Object{}
	if v, ok := original["metadata"]; ok {
		if meta, ok = v.(object.Object); !ok {
			return fmt.Errorf("invalid metadata of type %T in input object", v)
		}
		meta = runtime.DeepCopyJSON(meta)
	}
	for _, name := range []string{"labels", "annotations"} {
		if err := takeStrings(meta, theirs, name); err != nil {
			return err
		}
	}
	converted["metadata"] = meta
	return nil
}

// takeStrings sets meta's labels or annotations to the webhook's, if they are valid.
func takeStrings(meta, theirs object.Object, name string) error {
	v := theirs[name]
	if v == nil {
		delete(meta, name)
		return nil
	}
	now, ok := v.(object.Object)
	if !ok {
		return fmt.Errorf("invalid metadata.%s of type %T in converted object", name, v)
	}
	before, ok := meta[name].(object.Object)
	if !ok && meta[name] != nil {
		return fmt.Errorf("invalid metadata.%s of type %T in original object", name, meta[name])
	}
	changed := len(before) != len(now)
	texts := make(map[string]string, len(now))
	for k, v := range now {
		text, ok := v.(string)
		if !ok {
			return fmt.Errorf("metadata.%s[%s] must be a string, but is %T in converted object", name, k, v)
		}
		texts[k] = text
		changed = changed || before[k] != v
	}
	if changed { // unchanged ones are not validated: they may predate a rule
		var errs field.ErrorList
		if name == "labels" {
			errs = metav1validation.ValidateLabels(texts, field.NewPath("metadata", "labels"))
		} else {
			errs = apivalidation.ValidateAnnotations(texts, field.NewPath("metadata", "annotation"))
		}
		if len(errs) > 0 {
			return invalid.Join(errs)
		}
	}
	meta[name] = now
	return nil
}
