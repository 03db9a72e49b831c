package definitions

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/internal/feature/compat"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

func text(keywords ...any) object.Object {
	out := object.Object{"type": "string"}
	for i := 0; i < len(keywords); i += 2 {
		out[keywords[i].(string)] = keywords[i+1]
	}
	return out
}

// enforce are annotations that refuse breaking changes.
func enforce() object.Object { return object.Object{compat.Annotation: "Enforce"} }

// TestLateObjects checks that a refusal includes an object that another replica wrote after the check had begun, and
// that a write of an object that began before an accepted change does not end after it.
func TestLateObjects(t *testing.T) {
	t.Parallel()
	const exempt = "{mode: Enforce, classes: {maxLength: off}}"
	for _, late := range []string{"short", "much too long"} {
		t.Run(late, func(t *testing.T) {
			t.Parallel()
			etcd := memory.New()
			a, b := start(t, etcd, Settings{}), start(t, etcd, Settings{})
			a.define(object.Object{compat.Annotation: exempt}, version("v1", true, object.Object{"port": text()}))
			a.create(ships, ship("first", object.Object{"port": "Kiel"}))
			early := b.call(ships, "first")
			a.check = func(name string) {
				if name == "first" {
					b.create(ships, ship("late", object.Object{"port": late}))
				}
			}
			changed := version("v1", true, object.Object{"port": text("maxLength", int64(5))})
			_, err := a.redefine(t.Context(), nil, changed)
			if late == "short" {
				if err != nil {
					t.Fatal(err)
				}
				_, err := b.Update(t.Context(), early, updateOptions, setPort("Bremerhaven"))
				if !apierrors.IsTooManyRequests(err) {
					t.Errorf("a write that began under the former definition: %v", err)
				}
				return
			}
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "stored objects become invalid: late: spec.port: "+
				"Too long (invalidObjects)") || strings.Contains(err.Error(), late) {
				t.Errorf("got %v", err)
			}
			if _, err := b.Update(t.Context(), early, updateOptions, setPort("Bremerhaven")); err != nil {
				t.Errorf("a write after the refusal: %v", err)
			}
		})
	}
}

// TestEnds checks that a check ends with the request, with nothing changed.
func TestEnds(t *testing.T) {
	t.Parallel()
	for _, annotations := range []object.Object{{}, enforce()} {
		etcd := memory.New()
		a := start(t, etcd, Settings{Within: time.Hour})
		a.define(annotations, version("v1", true, object.Object{"port": text()}))
		a.create(ships, ship("first", object.Object{"port": "Kiel"}))
		a.create(ships, ship("second", object.Object{"port": "Kiel"}))
		ctx, end := context.WithCancel(t.Context())
		a.check = func(string) { end() }
		_, err := a.redefine(ctx, nil, version("v1", true, object.Object{"port": text("maxLength", int64(50))}))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if g := a.generation(); g != 1 {
			t.Errorf("generation %d", g)
		}
	}
}

// TestBound checks that a warning does not wait for the check of all objects.
func TestBound(t *testing.T) {
	t.Parallel()
	a := start(t, memory.New(), Settings{Within: 1})
	a.define(object.Object{}, version("v1", true, object.Object{"port": text()}))
	a.create(ships, ship("first", object.Object{"port": "Kiel"}))
	got, err := a.redefine(t.Context(), nil, version("v1", true, object.Object{"port": text("default", "Bremen")}))
	want := `299 - "this change may break clients or stored objects: v1: spec.port: the default "Bremen" is added ` +
		`(default); 0 of 1 stored objects were read in 1ns: bowsprit crd diff --live reads all"`
	if err != nil || len(got) != 1 || strings.ReplaceAll(got[0], `\"`, `"`) != want {
		t.Errorf("got %s, %v\nnot %s", got, err, want)
	}
}

// TestNothingToCheck checks that updates that cannot affect objects read none.
func TestNothingToCheck(t *testing.T) {
	t.Parallel()
	a := start(t, memory.New(), Settings{Mode: compat.Enforce, Protect: true})
	a.define(object.Object{}, version("v1", true, object.Object{"port": text()}))
	a.create(ships, ship("first", object.Object{"port": "Kiel"}))
	a.check = func(string) { t.Error("an object is read") }
	documented := version("v1", true, object.Object{"port": text("description", "a port"), "flag": text()})
	for _, versions := range [][]any{{documented}, {documented}, {documented, withName(documented, "v2")}} {
		if _, err := a.redefine(t.Context(), nil, versions...); err != nil {
			t.Error(err)
		}
	}
}

// withName returns a version with another name that does not store objects.
func withName(of any, name string) any {
	out := runtime.DeepCopyJSON(of.(object.Object))
	out["name"], out["storage"] = name, false
	return out
}

// TestFindsLikeDiff compares the server's warnings about random changes with the findings of package compat for the
// same definitions and objects, which bowsprit crd diff reports.
func TestFindsLikeDiff(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	a := start(t, memory.New(), Settings{Within: time.Hour})
	a.define(object.Object{}, randomVersions(r)...)
	for i := range 12 {
		a.createRandom(r, fmt.Sprint("s", i))
	}
	reported := 0
	for range 150 {
		versions := randomVersions(r)
		want := a.expected(versions)
		got, err := a.redefine(t.Context(), nil, runtime.DeepCopyJSONValue(versions).([]any)...)
		if err != nil {
			t.Fatal(err)
		}
		rest, listed := strings.ReplaceAll(strings.Join(got, ""), `\"`, `"`), 0
		for _, w := range want {
			if strings.Contains(rest, w) {
				rest = strings.Replace(rest, w, "", 1)
				listed++
			}
		}
		more := ""
		if len(want) > maxListed {
			more = fmt.Sprintf("; %d more findings", len(want)-maxListed)
		}
		if listed != min(len(want), maxListed) || strings.Contains(rest, "(") || !strings.Contains(rest, more) ||
			(len(want) == 0) != (len(got) == 0) {
			t.Errorf("got %s\nnot %s", got, want)
		}
		reported += listed
		a.createRandom(r, fmt.Sprint("s", r.IntN(1000)))
	}
	if reported < 100 {
		t.Errorf("only %d findings", reported)
	}
}

// createRandom creates a ship with random fields, unless it is invalid or exists.
func (r *replica) createRandom(rand *rand.Rand, name string) {
	spec := object.Object{}
	for _, field := range fields {
		switch rand.IntN(4) {
		case 0:
			spec[field] = int64(rand.IntN(10))
		case 1:
			spec[field] = strings.Repeat("x", rand.IntN(5))
		}
	}
	c := r.call(ships, "")
	if obj, err := r.New(c, ship(name, spec)); err == nil {
		_, _ = r.Create(r.Context(), c, obj, createOptions)
	}
}

// expected returns the findings of package compat, as the server words them.
func (r *replica) expected(versions []any) (texts []string) {
	r.Helper()
	c := r.call(crds, shipsName)
	entry, err := r.Current(r.Context(), c)
	if err != nil {
		r.Fatal(err)
	}
	old, err := r.Object(c, entry)
	if err != nil {
		r.Fatal(err)
	}
	obj := runtime.DeepCopyJSON(old)
	object.Map(obj, "spec")["versions"] = runtime.DeepCopyJSONValue(versions)
	was, is := r.decode(old), r.decode(obj)
	found := compat.Compare(was, is)
	policy := &compat.Policy{}
	for _, o := range compat.NewObjects(was, is) {
		o.HideValues()
		of := r.call(ships, "")
		of = of.In(of.Resource.Version(o.Version()))
		r.View().Collection(of.Resource.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
			obj, err := r.Object(of, e)
			if err == nil {
				err = o.Check("", e.Name, obj)
			}
			if err != nil {
				r.Fatal(err)
			}
			return true
		})
		found = append(found, o.Findings()...)
	}
	for i := range found {
		f := found[i]
		if level, _ := policy.Level(shipsName, &f); level != compat.Off {
			texts = append(texts, describe(judged{Finding: f}))
		}
	}
	return texts
}

func (r *replica) decode(obj object.Object) *apiextensionsv1.CustomResourceDefinition {
	r.Helper()
	def, err := crd.Decode(obj)
	if err != nil {
		r.Fatal(err)
	}
	return def
}

// fields are the fields of random ships.
var fields = []string{"a", "b", "c"}

// randomVersions returns versions with random fields.
func randomVersions(r *rand.Rand) []any {
	random := func() object.Object {
		out := object.Object{}
		for _, name := range fields {
			switch r.IntN(8) {
			case 0:
				out[name] = object.Object{"x-kubernetes-preserve-unknown-fields": true}
			case 1:
				out[name] = object.Object{"type": "integer", "maximum": int64(3 + r.IntN(6))}
			case 2:
				out[name] = text("maxLength", int64(1+r.IntN(4)))
			case 3:
				out[name] = text("default", "x")
			case 4:
				out[name] = text("description", fmt.Sprint(r.IntN(9)))
			case 5:
				out[name] = text("x-kubernetes-validations", []any{object.Object{"rule": "self != 'xx'"}})
			}
		}
		return out
	}
	same := random()
	versions := []any{version("v1", true, same)}
	if r.IntN(2) == 0 {
		return append(versions, version("v1beta1", false, random()))
	}
	return append(versions, version("v1beta1", false, runtime.DeepCopyJSON(same)))
}
