package oraclebuiltins

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	scheduling "k8s.io/api/scheduling/v1alpha2"

	ours "github.com/bowsprit/bowsprit/internal/kinds/scheduling/v1alpha2"
)

// message is a Go type with a protobuf form.
type message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// TestSchedulingTypes compares our own Go types of scheduling.k8s.io/v1alpha2 with the types of k8s.io/api: names and
// tags of all fields, and for random objects the bytes of messages and their decoded values.
func TestSchedulingTypes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ ours, theirs message }{
		{&ours.PodGroup{}, &scheduling.PodGroup{}}, {&ours.Workload{}, &scheduling.Workload{}},
	} {
		mine, kubes := reflect.TypeOf(c.ours).Elem(), reflect.TypeOf(c.theirs).Elem()
		t.Run(kubes.Name(), func(t *testing.T) {
			t.Parallel()
			if got, want := shape(mine), shape(kubes); got != want {
				t.Errorf("fields\n%s, want\n%s", got, want)
			}
			for seed := range int64(200) {
				given := reflect.New(kubes).Interface().(message)
				filler(seed).Fill(given)
				compareMessages(t, reflect.New(mine).Interface().(message), given)
			}
		})
	}
}

func compareMessages(t *testing.T, got, given message) {
	t.Helper()
	want, err := given.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Unmarshal(want); err != nil {
		t.Fatalf("read %q: %v", want, err)
	}
	if again, err := got.Marshal(); err != nil || !bytes.Equal(again, want) {
		t.Fatalf("wrote\n%q, %v, want\n%q", again, err, want)
	}
	back := reflect.New(reflect.TypeOf(given).Elem()).Interface().(message)
	if err := back.Unmarshal(want); err != nil {
		t.Fatal(err)
	}
	if a, b := marshal(t, got), marshal(t, back); !bytes.Equal(a, b) {
		t.Fatalf("read\n%s, want\n%s", a, b)
	}
}

// shape lists the fields of a type and of all types below it outside of k8s.io/apimachinery, with their names in
// errors, their encodings, and their strategic merge patch.
func shape(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return t.Kind().String() + " of " + shape(t.Elem())
	case reflect.Struct:
	default:
		return t.String()
	}
	out := t.String()
	if strings.HasPrefix(t.PkgPath(), "k8s.io/apimachinery/") {
		return out
	}
	for i := range t.NumField() {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("protobuf"), ",")
		// the message does not depend on the tag's later parts
		out += fmt.Sprintf("\n%s %q %q %q %q %s", f.Name, f.Tag.Get("json"), tag[:min(2, len(tag))],
			f.Tag.Get("patchStrategy"), f.Tag.Get("patchMergeKey"), shape(f.Type))
	}
	return out + "\nend"
}
