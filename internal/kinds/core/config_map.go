package core

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func configMapKind() rule.Kind {
	return rule.Of[corev1.ConfigMap](rule.Kind{
		Group: coreV1, Kind: "ConfigMap", AnyFinalizer: true, Plural: "configmaps", Short: []string{"cm"},
		Strategy: &catalog.Strategy{
			UnconditionalUpdate: true,
			Cells:               configMapCells,
		},
	})
}

// immutableWhenSet is the error for changes of an immutable config map or secret.
const immutableWhenSet = "field is immutable when `immutable` is set"

func validateConfigMap(cm *corev1.ConfigMap) field.ErrorList {
	errs := rule.CheckFinalizers(cm.Finalizers)
	size := 0
	path := field.NewPath("data")
	for _, key := range slices.Sorted(maps.Keys(cm.Data)) {
		errs = append(errs, checkKey(path, key)...)
		if _, twice := cm.BinaryData[key]; twice {
			errs = append(errs, field.Invalid(path.Key(key), key, "duplicate of key present in binaryData"))
		}
		size += len(cm.Data[key])
	}
	path = field.NewPath("binaryData")
	for _, key := range slices.Sorted(maps.Keys(cm.BinaryData)) {
		errs = append(errs, checkKey(path, key)...)
		size += len(cm.BinaryData[key])
	}
	if size > corev1.MaxSecretSize {
		// The empty path means that the object as a whole is too large.
		errs = append(errs, field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
	}
	return errs
}

func validateConfigMapUpdate(cm, old *corev1.ConfigMap, _ string) field.ErrorList {
	var errs field.ErrorList
	if isTrue(old.Immutable) {
		if !isTrue(cm.Immutable) {
			errs = append(errs, field.Forbidden(field.NewPath("immutable"), immutableWhenSet))
		}
		if !reflect.DeepEqual(cm.Data, old.Data) {
			errs = append(errs, field.Forbidden(field.NewPath("data"), immutableWhenSet))
		}
		if !reflect.DeepEqual(cm.BinaryData, old.BinaryData) {
			errs = append(errs, field.Forbidden(field.NewPath("binaryData"), immutableWhenSet))
		}
	}
	return append(errs, validateConfigMap(cm)...)
}

// checkKey validates a key of data or binaryData, which must be a valid file name.
func checkKey(path *field.Path, key string) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range validation.IsConfigMapKey(key) {
		errs = append(errs, field.Invalid(path.Key(key), key, msg))
	}
	return errs
}

func isTrue(b *bool) bool { return b != nil && *b }

func configMapCells(obj object.Object, e catalog.Env) []any {
	data, _ := obj["data"].(map[string]any)
	binary, _ := obj["binaryData"].(map[string]any)
	return []any{object.String(obj, "metadata", "name"), int64(len(data) + len(binary)), rule.Age(obj, e.Now)}
}

// configMapFunctions are the functions that config_map.txt names.
func configMapFunctions() rule.Functions {
	return rule.Functions{
		"configMap": rule.Typed(validateConfigMap, validateConfigMapUpdate),
	}
}
