package kinds_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request/charge"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// elements is the number of elements of each list and map.
const elements = 400

// fieldPath is a field with any number of elements, with the path to it.
type fieldPath struct {
	path []reflect.StructField
	name string // of its struct, and its own
}

// placesIn returns the fields of a kind with any number of elements. It skips fields in seen, which another kind has in
// the same struct.
func placesIn(t reflect.Type, path []reflect.StructField, seen map[string]bool) (out []fieldPath) {
	if len(path) > 12 {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		here := append(slices.Clone(path), f)
		in := f.Type
		switch in.Kind() {
		case reflect.Slice, reflect.Map:
			key := fmt.Sprint(t, ".", f.Name)
			if in.Elem().Kind() == reflect.Uint8 || seen[key] {
				continue
			}
			seen[key] = true
			out = append(out, fieldPath{here, key})
			in = in.Elem()
		case reflect.Pointer:
			in = in.Elem()
		}
		if in.Kind() == reflect.Struct && f.Tag.Get("protobuf") != "" {
			out = append(out, placesIn(in, here, seen)...)
		}
	}
	return out
}

// inJSON returns an object with so many elements at a place; element returns the text of one for its type.
func inJSON(path []reflect.StructField, element func(reflect.Type) string) string {
	f := path[0]
	value := ""
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	last := len(path) == 1
	switch {
	case t.Kind() == reflect.Slice && last:
		value = "[" + strings.TrimSuffix(strings.Repeat(element(t.Elem())+",", elements), ",") + "]"
	case t.Kind() == reflect.Slice:
		value = "[" + inJSON(path[1:], element) + "]"
	case t.Kind() == reflect.Map && last:
		var b strings.Builder
		for i := range elements {
			fmt.Fprintf(&b, `"%d":%s,`, i, element(t.Elem()))
		}
		value = "{" + strings.TrimSuffix(b.String(), ",") + "}"
	case t.Kind() == reflect.Map:
		value = `{"a":` + inJSON(path[1:], element) + "}"
	default:
		value = inJSON(path[1:], element)
	}
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" { // embedded: its fields belong to the struct around it
		return value
	}
	return fmt.Sprintf("{%q:%s}", name, value)
}

// empty returns the shortest JSON of a type.
func empty(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return `""`
	case reflect.Slice:
		return "[]"
	case reflect.Bool:
		return "true"
	case reflect.Int32, reflect.Int64, reflect.Int, reflect.Uint32, reflect.Uint64:
		return "0"
	case reflect.Pointer:
		return empty(t.Elem())
	}
	if strings.HasSuffix(t.String(), ".Quantity") {
		return `"1"`
	}
	if strings.HasSuffix(t.String(), ".Time") {
		return "null"
	}
	return "{}"
}

// null is the text of a missing element. In a list it becomes an empty one of the Go type.
func null(reflect.Type) string { return "null" }

// inProtobuf returns a message with so many empty messages at a place, and whether it has a form in protobuf.
func inProtobuf(path []reflect.StructField) ([]byte, bool) {
	tag := strings.Split(path[0].Tag.Get("protobuf"), ",")
	if len(tag) < 2 {
		return nil, false
	}
	number, err := strconv.ParseUint(tag[1], 10, 32)
	if err != nil || tag[0] != "bytes" {
		return nil, false
	}
	head := binary.AppendUvarint(nil, number<<3|2)
	if len(path) == 1 {
		return []byte(strings.Repeat(string(append(head, 0)), elements)), true
	}
	inner, ok := inProtobuf(path[1:])
	if path[0].Type.Kind() == reflect.Map { // a map entry with the message as value, field 2
		inner = append(binary.AppendUvarint([]byte{2<<3 | 2}, uint64(len(inner))), inner...)
	}
	return append(binary.AppendUvarint(head, uint64(len(inner))), inner...), ok
}

// TestWeight decodes bodies with many empty elements in each list and each map of each kind, in each form, and compares
// the memory that it allocates with the weight that the request is charged for.
func TestWeight(t *testing.T) {
	seen := map[string]bool{}
	places, worst := 0, extreme{}
	for _, res := range kinds.Resources() {
		for _, v := range res.Versions {
			if v.New == nil {
				continue
			}
			kind := schema.GroupVersionKind{Group: res.Group, Version: v.Name, Kind: res.Kind}
			goType := reflect.TypeOf(v.New()).Elem()
			for _, p := range placesIn(goType, nil, seen) {
				places++
				c := comparison{kind, res, v, p.name, &worst}
				c.compareTexts(t, inJSON(p.path, empty))
				c.compareTexts(t, inJSON(p.path, null))
				if message, ok := inProtobuf(p.path); ok {
					data := codec.Enclose(kind.GroupVersion().String(), kind.Kind, message)
					c.compare(t, decode.Body{Data: data, Type: codec.Protobuf}, charge.Protobuf(message, goType))
				}
			}
		}
	}
	t.Logf("%d places; %s comes nearest: %.2f of twice its weight", places, worst.name, worst.part)
	if places < 450 {
		t.Errorf("only %d places were found", places)
	}
}

// extreme is the body with the highest ratio of memory to weight.
type extreme struct {
	name string
	part float64
}

// comparison is a place in objects of a kind.
type comparison struct {
	kind  schema.GroupVersionKind
	res   *catalog.Resource
	v     *catalog.Version
	path  string
	worst *extreme
}

// compareTexts compares an object's fields as JSON, YAML and CBOR.
func (c *comparison) compareTexts(t *testing.T, fields string) {
	t.Helper()
	doc := []byte(strings.Replace(fields, "{",
		fmt.Sprintf(`{"apiVersion":%q,"kind":%q,`, c.kind.GroupVersion(), c.kind.Kind), 1))
	value, err := codec.DecodeJSON(doc)
	if err != nil {
		t.Fatalf("%s: %v: %s", c.path, err, doc)
	}
	binary := codec.AppendCBOR(nil, value)
	c.compare(t, decode.Body{Data: doc, Type: codec.JSON}, charge.JSON(doc))
	c.compare(t, decode.Body{Data: doc, Type: codec.YAML}, charge.YAML(doc))
	c.compare(t, decode.Body{Data: binary, Type: codec.CBOR}, charge.CBOR(binary))
}

// compare decodes a body as a creation does.
func (c *comparison) compare(t *testing.T, body decode.Body, weight int64) {
	t.Helper()
	ctx := codec.WithCBOR(context.Background())
	read := func() {
		obj, _, err := decode.Read(ctx, body, true, c.kind, c.v.New)
		if err != nil {
			return // some kinds have strings that must not be empty
		}
		if rules := c.res.StrategyFor(c.v); rules != nil && rules.Decode != nil {
			_, _ = rules.Decode(obj)
		}
	}
	read() // caches of the type are not counted
	used := int64(allocated(read))
	// Half of the decoder's allocations are garbage when it is done.
	most := 2 * weight
	const allowance = 64 << 10 // for allocations that do not depend on the elements
	name := fmt.Sprintf("%s %s in %s", c.kind.Kind, c.path, body.Type)
	if part := float64(used-allowance) / float64(most); part > c.worst.part {
		*c.worst = extreme{name, part}
	}
	if used > most+allowance {
		t.Errorf("%s: %d bytes are allocated for each element, its weight is %d", name, used/elements, weight/elements)
	}
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
