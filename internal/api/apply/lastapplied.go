package apply

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/validation"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

const (
	// kubectl is the field manager of users who move from client-side to server-side apply.
	kubectl = "kubectl"
	// lastAppliedAnnotation holds the last configuration of client-side apply.
	lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"
)

// lastApplied returns the fields written by client-side apply that still have the written values.
func (o *Ownership) lastApplied(live map[string]any) (*fieldpath.Set, error) {
	doc := annotation(live, lastAppliedAnnotation)
	if doc == "" {
		return nil, errors.New("no last applied annotation")
	}
	last := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(doc), &last); err != nil {
		return nil, fmt.Errorf("decode last applied configuration: %w", err)
	}
	if last["apiVersion"] != o.apiVersion {
		return nil, fmt.Errorf("last applied configuration has version %v", last["apiVersion"])
	}
	liveTyped, err := o.typed(live)
	if err != nil {
		return nil, err
	}
	lastTyped, err := o.typed(last)
	if err != nil {
		return nil, err
	}
	fields, err := lastTyped.ToFieldSet()
	if err != nil {
		return nil, err
	}
	changes, err := lastTyped.Compare(liveTyped)
	if err != nil {
		return nil, err
	}
	return fields.Difference(changes.Modified).Difference(changes.Added).Difference(changes.Removed), nil
}

// refreshLastApplied keeps the annotation true when kubectl applies on the server an object that has it, so that an
// older kubectl can go on with client-side apply.
func refreshLastApplied(obj, applied map[string]any) error {
	if annotation(obj, lastAppliedAnnotation) == "" {
		return nil
	}
	config := copyObject(applied)
	if meta, ok := config["metadata"].(map[string]any); ok {
		if annotations, ok := meta["annotations"].(map[string]any); ok {
			kept := map[string]any{}
			for k, v := range annotations {
				if k != lastAppliedAnnotation {
					kept[k] = v
				}
			}
			meta["annotations"] = kept
		}
	}
	doc, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("failed to build last-applied annotation: %w", err)
	}
	meta := obj["metadata"].(map[string]any) // it has annotations
	annotations := map[string]any{}
	sizes := map[string]string{}
	for k, v := range meta["annotations"].(map[string]any) {
		annotations[k] = v
		sizes[k], _ = v.(string)
	}
	annotations[lastAppliedAnnotation] = string(doc) + "\n"
	sizes[lastAppliedAnnotation] = annotations[lastAppliedAnnotation].(string)
	if validation.ValidateAnnotationsSize(sizes) != nil {
		delete(annotations, lastAppliedAnnotation)
	}
	meta["annotations"] = annotations
	return nil
}

func annotation(obj map[string]any, name string) string {
	meta, _ := obj["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	value, _ := annotations[name].(string)
	return value
}
