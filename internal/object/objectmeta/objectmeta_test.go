package objectmeta

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/object"
)

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		in      any
		want    any
		unknown []string
		err     string
	}{
		"plain": {
			in:   object.Object{"name": "a", "labels": object.Object{"x": "y"}},
			want: object.Object{"name": "a", "labels": object.Object{"x": "y"}},
		},
		"null":          {in: nil, want: nil},
		"not an object": {in: "a", err: "json: cannot unmarshal string into Go value of type v1.ObjectMeta"},
		"unknown field": {
			in: object.Object{"name": "a", "foo": "b"}, want: object.Object{"name": "a"},
			unknown: []string{"metadata.foo"},
		},
		"null field": {in: object.Object{"name": "a", "labels": nil}, want: object.Object{"name": "a"}},
		"null time":  {in: object.Object{"name": "a", "creationTimestamp": nil}, want: object.Object{"name": "a"}},
		"wrong type": {
			in:  object.Object{"name": int64(1)},
			err: "cannot unmarshal number into Go struct field ObjectMeta.name of type string",
		},
		"wrong label": {
			in:  object.Object{"labels": object.Object{"x": int64(1)}},
			err: "cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
		},
		"time with zone": {
			in:   object.Object{"creationTimestamp": "2026-01-02T03:04:05+01:00"},
			want: object.Object{"creationTimestamp": "2026-01-02T02:04:05Z"},
		},
		"bad time": {in: object.Object{"creationTimestamp": "yesterday"}, err: "cannot parse"},
		"owner": {
			in: object.Object{
				"ownerReferences": []any{
					object.Object{"apiVersion": "v1", "kind": "A", "name": "b", "uid": "c", "zap": true},
				},
			},
			want: object.Object{
				"ownerReferences": []any{object.Object{"apiVersion": "v1", "kind": "A", "name": "b", "uid": "c"}},
			},
			unknown: []string{"metadata.ownerReferences[0].zap"},
		},
		"managed kept": {
			in:   object.Object{"name": "a", "managedFields": []any{object.Object{"manager": "m"}}},
			want: object.Object{"name": "a", "managedFields": []any{object.Object{"manager": "m"}}},
		},
		"managed no list":  {in: object.Object{"managedFields": "x"}, err: "ObjectMeta.managedFields"},
		"empty finalizers": {in: object.Object{"name": "a", "finalizers": []any{}}, want: object.Object{"name": "a"}},
	} {
		obj := object.Object{"metadata": c.in}
		unknown, err := Check(obj)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: got error %v, want %q", name, err, c.err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(obj["metadata"], c.want) || !reflect.DeepEqual(unknown, c.unknown) {
			t.Errorf("%s: got %v, unknown %v, error %v", name, obj["metadata"], unknown, err)
		}
	}
}

func TestDropDuplicateOwners(t *testing.T) {
	owner := func(uid string) any { return object.Object{"apiVersion": "v1", "kind": "A", "name": "n", "uid": uid} }
	obj := object.Object{"metadata": object.Object{"ownerReferences": []any{owner("1"), owner("2"), owner("1")}}}
	var warned []string
	DropDuplicateOwners(obj, func(text string) { warned = append(warned, text) })
	if got := object.Meta(obj)["ownerReferences"].([]any); len(got) != 2 {
		t.Errorf("kept %d references", len(got))
	}
	if len(warned) != 1 || !strings.HasSuffix(warned[0], "duplicate UID(s) observed: 1") {
		t.Errorf("warned %q", warned)
	}
}

// Kube decodes the metadata of a kind with a Go type within the object, which the path in the error shows.
func TestWithinKind(t *testing.T) {
	for _, c := range []struct{ err, want string }{
		{"json: cannot unmarshal string into Go value of type v1.ObjectMeta",
			"json: cannot unmarshal string into Go struct field ConfigMap.metadata of type v1.ObjectMeta"},
		{"json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
			"json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string"},
		{"json: cannot unmarshal number into Go struct field OwnerReference.ownerReferences.name of type string",
			"json: cannot unmarshal number into Go struct field OwnerReference.metadata.ownerReferences.name of type string"},
		{"parsing time: x", "parsing time: x"},
	} {
		if got := WithinKind(errors.New(c.err), "ConfigMap").Error(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
