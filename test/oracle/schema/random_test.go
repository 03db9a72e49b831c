package schema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/test/oracle/fixture"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	shards     = 8
	objectsPer = 12 // objects for each schema
)

// TestRandom compares ours with upstream on random schemas and objects. It normalizes and validates each object in
// several ways. ORACLE_CASES is the number of objects, 6,000 by default; ORACLE_SEED starts another series.
func TestRandom(t *testing.T) {
	cases, seed := fixture.Setting("ORACLE_CASES", 6000), fixture.Setting("ORACLE_SEED", 1)
	var made atomic.Int64
	t.Cleanup(func() { t.Logf("%d comparisons", made.Load()) })
	for shard := range shards {
		t.Run(strconv.Itoa(shard), func(t *testing.T) {
			t.Parallel()
			for i := range cases / shards / objectsPer {
				compareSchema(t, &made, uint64(seed)<<8|uint64(shard), uint64(i))
				if t.Failed() {
					return
				}
			}
		})
	}
}

// compareSchema makes one schema and objects for it.
func compareSchema(t *testing.T, made *atomic.Int64, seed, i uint64) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, i))}
	g.wild = g.IntN(12)
	props := g.root()
	preserve := g.in(5)
	up, upErr := newUpstream(props, preserve)
	our, ourErr := schema.Compile(props, schema.Options{PreserveUnknownFields: preserve})
	if (upErr == nil) != (ourErr == nil) {
		t.Fatalf("seed %d,%d: compile: ours %v, upstream %v\n%s", seed, i, ourErr, upErr, dump(props))
	}
	if upErr != nil {
		return
	}
	for n := range objectsPer {
		c := &comparison{T: t, props: props, name: fmt.Sprintf("seed %d,%d object %d", seed, i, n), up: up, our: our}
		g.wild = g.IntN(12)
		c.object(g)
		made.Add(c.made)
	}
}

// comparison is one object under comparison.
type comparison struct {
	*testing.T
	props *apiextensionsv1.JSONSchemaProps
	name  string
	up    *upstream
	our   *schema.Schema
	made  int64 // results of ours that were held to upstream's
}

func (c *comparison) object(g *generator) {
	input := decode([]byte(dump(g.resource(c.props)))).(map[string]any)
	obj, ok := c.shape(input)
	if !ok || g.in(10) {
		obj = input // validation also gets values that normalization would have removed
	}
	c.errors("create", input, nil, c.our.Validate(obj, nil), c.up.validate(obj, nil))
	changed, ok := decode([]byte(dump(g.edit(c.props, obj)))).(map[string]any)
	if !ok {
		return
	}
	c.errors("update", changed, obj, c.our.Validate(changed, obj), c.up.validate(changed, obj))
	c.errors("status", changed, obj, statusErrors(c.our, changed, obj), c.up.validateStatus(changed, obj))
}

// shape compares the ways of normalizing an object. It returns the normalized object if it is well formed.
func (c *comparison) shape(input map[string]any) (map[string]any, bool) {
	a, b := runtime.DeepCopyJSON(input), runtime.DeepCopyJSON(input)
	ourUnknown, ourErr := c.our.NormalizeRequest(a)
	upUnknown, upErr := c.up.shape(b, false, true)
	if (ourErr == nil) != (upErr == nil) {
		c.Errorf("%s: normalize: ours %v, upstream %v\nobject %s\nschema %s", c.name, ourErr, upErr, dump(input),
			dump(c.props))
	}
	if upErr == nil {
		c.same("request", input, a, b)
		if !slices.Equal(ourUnknown, upUnknown) {
			c.Errorf("%s: unknown fields: ours %q, upstream %q\nobject %s\nschema %s", c.name, ourUnknown, upUnknown,
				dump(input), dump(c.props))
		}
		bare, upBare := runtime.DeepCopyJSON(input), runtime.DeepCopyJSON(input)
		_ = c.our.NormalizeConverted(bare)
		_, _ = c.up.shape(upBare, false, false)
		c.same("converted", input, bare, upBare)
	}
	stored, upStored := runtime.DeepCopyJSON(input), runtime.DeepCopyJSON(input)
	c.our.NormalizeStored(stored)
	if _, err := c.up.shape(upStored, true, true); err == nil {
		c.same("stored", input, stored, upStored)
	}
	return a, upErr == nil
}

func (c *comparison) same(desc string, input, a, b map[string]any) {
	c.made++
	if !reflect.DeepEqual(a, b) {
		c.Errorf("%s: %s:\nours     %s\nupstream %s\nobject   %s\nschema %s", c.name, desc, dump(a), dump(b),
			dump(input), dump(c.props))
	}
}

func (c *comparison) errors(desc string, obj, old map[string]any, a, b field.ErrorList) {
	c.made++
	x, y := describe(a), describe(b)
	if !slices.Equal(x, y) {
		c.Errorf("%s: %s:\nours     %q\nupstream %q\nobject %s\nold %s\nschema %s", c.name, desc, x, y, dump(obj),
			dump(old), dump(c.props))
	}
}

// describe makes errors comparable as a sorted list, since upstream orders them by Go's maps.
func describe(errs field.ErrorList) []string {
	out := make([]string, len(errs))
	for i, e := range errs {
		out[i] = fmt.Sprintf("%s|%s|%T|%s", e.Type, e.Error(), e.BadValue, dump(e.BadValue))
	}
	slices.Sort(out)
	return out
}

func dump(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
