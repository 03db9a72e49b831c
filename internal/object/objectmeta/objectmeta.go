// Package objectmeta checks that the metadata of a decoded JSON object is Kubernetes' ObjectMeta, and converts it to
// the form in which ObjectMeta is encoded.
//
// It runs after the decoding of a request's body and before the kind's own schema, since all kinds have the same
// metadata. Its functions are pure, except that they change the object in place.
package objectmeta

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/object"
)

// metaKind is the JSON type of a metadata field.
type metaKind int

const (
	metaString metaKind = iota
	metaInt
	metaTime
	metaStringMap
	metaStrings
	metaObjects
	metaManaged
)

// metaFields are the fields of metav1.ObjectMeta.
var metaFields = map[string]metaKind{
	"name": metaString, "generateName": metaString, "namespace": metaString, "selfLink": metaString, "uid": metaString,
	"resourceVersion": metaString, "generation": metaInt, "creationTimestamp": metaTime, "deletionTimestamp": metaTime,
	"deletionGracePeriodSeconds": metaInt, "labels": metaStringMap, "annotations": metaStringMap,
	"finalizers":      metaStrings,
	"ownerReferences": metaObjects, "managedFields": metaManaged,
}

// Check checks that obj.metadata is an ObjectMeta, drops unknown fields and nulls, and returns the paths of the unknown
// fields. The error equals the one of decoding into metav1.ObjectMeta.
//
// Nearly every object passes the cheap walk. Only unusual metadata goes through the typed decoder, for Kubernetes'
// error text.
func Check(obj object.Object) (unknown []string, err error) {
	raw, found := obj["metadata"]
	if !found {
		return nil, nil
	}
	meta, ok := raw.(object.Object)
	if !ok {
		if raw == nil {
			delete(obj, "metadata")
			return nil, nil
		}
		return nil, fmt.Errorf("json: cannot unmarshal %s into Go value of type v1.ObjectMeta", JSONKind(raw))
	}
	for key, v := range meta {
		kind, known := metaFields[key]
		if !known || !plausible(kind, v) {
			return retype(obj, meta)
		}
	}
	return nil, nil
}

// WithinKind rewords an error of Check for a kind with a Go type. As in Kubernetes its metadata is decoded within the
// object.
func WithinKind(err error, kind string) error {
	text := err.Error()
	if whole, ok := strings.CutSuffix(text, " into Go value of type v1.ObjectMeta"); ok {
		return fmt.Errorf("%s into Go struct field %s.metadata of type v1.ObjectMeta", whole, kind)
	}
	before, field, ok := strings.Cut(text, " into Go struct field ")
	structure, path, dotted := strings.Cut(field, ".")
	if !ok || !dotted {
		return err
	}
	return fmt.Errorf("%s into Go struct field %s.metadata.%s", before, structure, path)
}

func plausible(kind metaKind, v any) bool {
	switch kind {
	case metaString:
		_, ok := v.(string)
		return ok
	case metaInt:
		_, ok := v.(int64)
		return ok
	case metaTime:
		s, ok := v.(string)
		if !ok {
			return false
		}
		_, err := time.Parse(time.RFC3339, s)
		return err == nil && strings.HasSuffix(s, "Z") && len(s) == len("2006-01-02T15:04:05Z")
	case metaStringMap:
		m, ok := v.(object.Object)
		if !ok {
			return false
		}
		for _, e := range m {
			if _, ok := e.(string); !ok {
				return false
			}
		}
		return len(m) > 0
	case metaStrings:
		l, ok := v.([]any)
		if !ok {
			return false
		}
		for _, e := range l {
			if _, ok := e.(string); !ok {
				return false
			}
		}
		return len(l) > 0
	case metaManaged:
		// Owner references and managed fields have fields of their own, which need the typed decoder. Only an empty
		// list passes, which clients send to reset managed fields.
		l, ok := v.([]any)
		return ok && len(l) == 0
	}
	return false
}

// retype replaces metadata by its round trip through metav1.ObjectMeta.
func retype(obj, meta object.Object) ([]string, error) {
	// managedFields are large, and package apply validates them; they skip the round trip.
	managed, has := meta["managedFields"]
	delete(meta, "managedFields")
	raw, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	var typed metav1.ObjectMeta
	strict, err := kjson.UnmarshalStrict(raw, &typed)
	if err != nil {
		// The decoder reports paths below the metadata; kube decodes it inside the object.
		return nil, err
	}
	var unknown []string
	for _, e := range strict {
		if path, ok := strings.CutPrefix(e.Error(), `unknown field "`); ok {
			unknown = append(unknown, "metadata."+strings.TrimSuffix(path, `"`))
		}
	}
	clean, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
	if err != nil {
		return nil, err
	}
	if clean["creationTimestamp"] == nil {
		delete(clean, "creationTimestamp")
	}
	if has && managed != nil {
		if _, ok := managed.([]any); !ok {
			return nil,
				fmt.Errorf(
					"json: cannot unmarshal %s into Go struct field ObjectMeta.managedFields of type []v1.ManagedFieldsEntry", JSONKind(managed))
		}
		clean["managedFields"] = managed
	}
	obj["metadata"] = clean
	return unknown, nil
}

// JSONKind returns the JSON type of a decoded value, as in errors of encoding/json.
func JSONKind(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case bool:
		return "bool"
	case int64, float64:
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// MatchNamespace sets the request's namespace on an object, or rejects an object with another one.
func MatchNamespace(obj object.Object, namespace string) error {
	meta := object.Meta(obj)
	switch have := object.String(meta, "namespace"); {
	case have == namespace:
	case have == "":
		meta["namespace"] = namespace
	case namespace == "":
		delete(meta, "namespace") // a cluster-scoped kind
	default:
		return apierrors.NewBadRequest(
			"the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// MatchName rejects a body with another name than the path.
func MatchName(obj object.Object, want string) error {
	name := object.String(object.Meta(obj), "name")
	if name == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: %v",
			want, "name must be provided"))
	}
	if name != want {
		return apierrors.NewBadRequest(
			fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, want))
	}
	return nil
}

// WipeSystemFields removes the fields that only the server sets.
func WipeSystemFields(meta object.Object) {
	for _, key := range []string{"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
		"selfLink"} {
		delete(meta, key)
	}
}

// accessor makes an object readable for the library's metadata checks. It hides managedFields, which the server itself
// writes, and which are costly to convert.
type accessor struct{ unstructured.Unstructured }

func (*accessor) GetManagedFields() []metav1.ManagedFieldsEntry { return nil }

// Access returns obj for the library's checks of metadata.
func Access(obj object.Object) metav1.Object {
	return &accessor{unstructured.Unstructured{Object: obj}}
}

// Stamp is how times are written in objects: whole seconds, UTC.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// DropDuplicateOwners removes repeated owner references and warns about them, as the API has done since 1.20.
func DropDuplicateOwners(obj object.Object, warn func(string)) {
	refs, _ := object.Meta(obj)["ownerReferences"].([]any)
	if len(refs) < 2 {
		return
	}
	seen := map[string]bool{}
	kept := refs[:0:0]
	var repeated []string
	for _, r := range refs {
		text, _ := json.Marshal(r) // sorted keys: equal references give equal text
		if seen[string(text)] {
			if m, ok := r.(object.Object); ok {
				repeated = append(repeated, object.String(m, "uid"))
			}
			continue
		}
		seen[string(text)] = true
		kept = append(kept, r)
	}
	if len(repeated) > 0 {
		object.Meta(obj)["ownerReferences"] = kept
		warn(
			fmt.Sprintf(
				".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %v", strings.Join(repeated, ", ")))
	}
}
