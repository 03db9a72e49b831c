package convert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// fake is a webhook that only changes the version, counts, and calls before first.
type fake struct {
	calls   atomic.Int32
	objects atomic.Int32
	before  func(ctx context.Context, call int, objs []object.Object) error
}

func (f *fake) call(ctx context.Context, _ *apiextensionsv1.WebhookClientConfig, body []byte) ([]byte, error) {
	var review struct {
		Request struct {
			UID               string
			DesiredAPIVersion string
			Objects           []object.Object
		}
	}
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, err
	}
	objs := review.Request.Objects
	n := f.calls.Add(1)
	f.objects.Add(int32(len(objs)))
	if f.before != nil {
		if err := f.before(ctx, int(n), objs); err != nil {
			return nil, err
		}
	}
	for _, obj := range objs {
		obj["apiVersion"] = review.Request.DesiredAPIVersion
	}
	return json.Marshal(object.Object{"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
		"response": object.Object{
			"uid": review.Request.UID, "result": object.Object{"status": "Success"}, "convertedObjects": objs,
		}})
}

// hooked is twoVersions with a webhook.
func hooked() *catalog.Resource {
	r := twoVersions()
	r.Prefix = "example.com/things"
	r.Definition = catalog.Definition{Name: "things.example.com", UID: "d", Generation: 1}
	r.Conversion = func() (*apiextensionsv1.WebhookConversion, error) {
		return &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{}, ConversionReviewVersions: []string{"v1"},
		}, nil
	}
	return r
}

// stored returns n entries as the store keeps them, in v1.
func stored(t testing.TB, n, padding int) []*watchcache.Entry {
	t.Helper()
	var all []*watchcache.Entry
	for i := range n {
		e, err := watchcache.NewEntry(fmt.Sprintf("ns/a%d", i), fmt.Appendf(nil,
			`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a%d","namespace":"ns","uid":"u%d"},"spec":{"both":"%s"}}`, i, i, strings.Repeat("x", padding)), int64(i+1))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func TestEntriesAreConvertedOnce(t *testing.T) {
	f := &fake{}
	c := New(Options{Call: f.call, Metrics: prometheus.NewRegistry()})
	r := hooked()
	v1, v2 := r.Storage, r.Versions[0]
	in := stored(t, maxBatch+1, 100)
	for range 3 {
		out, err := c.Entries(t.Context(), r, v2, in)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range out {
			if want := fmt.Sprintf(`"name":"a%d"`, i); !strings.Contains(string(e.JSON()), want) ||
				e.APIVersion != "example.com/v2" || e.Revision != int64(i+1) || !e.IsConverted() {
				t.Fatalf("entry %d is %s", i, e.JSON())
			}
		}
	}
	if f.calls.Load() != 2 || f.objects.Load() != maxBatch+1 {
		t.Errorf("%d calls for %d objects", f.calls.Load(), f.objects.Load())
	}
	if out, err := c.Entries(t.Context(), r, v1, in); err != nil || &out[0] != &in[0] || f.calls.Load() != 2 {
		t.Errorf("the stored version was converted: %v, %d calls", err, f.calls.Load())
	}
	one := in[7].At(2000)
	if _, err := c.Entry(t.Context(), r, v2, one); err != nil || f.calls.Load() != 3 {
		t.Errorf("another revision made %d calls, %v", f.calls.Load(), err)
	}
	r.Definition.Generation++
	if _, err := c.Entry(t.Context(), r, v2, one); err != nil || f.calls.Load() != 4 {
		t.Errorf("another definition made %d calls, %v", f.calls.Load(), err)
	}
	if got := testValue(t, c.metrics.hits); got != 2*(maxBatch+1) {
		t.Errorf("%v hits", got)
	}
}

// TestLargeReply has a webhook return many more elements than it has received.
func TestLargeReply(t *testing.T) {
	elements := 50_000
	f := &fake{before: func(_ context.Context, _ int, objs []object.Object) error {
		list := make([]any, elements)
		for i := range list {
			list[i] = object.Object{}
		}
		objs[0]["spec"] = object.Object{"list": list}
		return nil
	}}
	c := New(Options{Call: f.call, Log: slog.New(slog.DiscardHandler)})
	r := hooked()
	in := stored(t, 2, 0)
	if _, err := c.Entry(t.Context(), r, r.Versions[0], in[0]); err == nil ||
		!strings.Contains(err.Error(), "the elements of its response") {
		t.Errorf("a large response: %v", err)
	}
	elements = 10_000
	if _, err := c.Entry(t.Context(), r, r.Versions[0], in[1]); err != nil {
		t.Errorf("a smaller response: %v", err)
	}
}

func testValue(t *testing.T, m prometheus.Metric) float64 {
	t.Helper()
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.GetCounter().GetValue()
}

func TestNullsStay(t *testing.T) {
	f := &fake{}
	c := New(Options{Call: f.call})
	r := hooked()
	e := stored(t, 1, 0)[0]
	out, err := c.Entries(t.Context(), r, r.Versions[0], []*watchcache.Entry{nil, e, nil, e})
	if err != nil || out[0] != nil || out[1] == nil || out[1] != out[3] || f.objects.Load() != 1 {
		t.Errorf("got %v, %v after %d objects", out, err, f.objects.Load())
	}
}

func TestConcurrentCallersShare(t *testing.T) {
	release, begun := make(chan struct{}), make(chan struct{})
	f := &fake{before: func(_ context.Context, call int, _ []object.Object) error {
		if call == 1 {
			close(begun)
		}
		<-release
		return nil
	}}
	c := New(Options{Call: f.call})
	r, in := hooked(), stored(t, 10, 0)
	var wg sync.WaitGroup
	list := func() {
		if _, err := c.Entries(t.Context(), r, r.Versions[0], in); err != nil {
			t.Error(err)
		}
	}
	wg.Go(list)
	<-begun
	for range 50 {
		wg.Go(list)
	}
	close(release)
	wg.Wait()
	if f.calls.Load() != 1 {
		t.Errorf("%d calls", f.calls.Load())
	}
}

func TestWhoGoesAwayDoesNotFailOthers(t *testing.T) {
	begun, waiting := make(chan struct{}), make(chan struct{})
	f := &fake{before: func(ctx context.Context, call int, _ []object.Object) error {
		if call == 1 {
			close(begun)
			<-waiting
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}}
	c := New(Options{Call: f.call})
	r, in := hooked(), stored(t, 2, 0)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := c.Entries(ctx, r, r.Versions[0], in); !errors.Is(err, context.Canceled) {
			t.Errorf("who went away got %v", err)
		}
	})
	<-begun
	wg.Go(func() {
		if out, err := c.Entries(t.Context(), r, r.Versions[0], in); err != nil || !out[0].IsConverted() {
			t.Errorf("who waited got %v", err)
		}
	})
	close(waiting)
	cancel()
	wg.Wait()
	if len(c.cache.mu.flights) != 0 {
		t.Error("flights are left")
	}
}

// TestOneBadObject checks that the other results of a call are kept, and that the reader of a good object succeeds.
func TestOneBadObject(t *testing.T) {
	f := &fake{before: func(_ context.Context, _ int, objs []object.Object) error {
		for _, obj := range objs {
			if meta := obj["metadata"].(map[string]any); meta["name"] == "a1" {
				meta["name"] = "other"
			}
		}
		return nil
	}}
	c := New(Options{Call: f.call})
	r, in := hooked(), stored(t, 3, 0)
	_, err := c.Entries(t.Context(), r, r.Versions[0], in)
	want := "conversion webhook for example.com/v1, Kind=Thing returned invalid converted object at index 1: must have the same name: a1 != other"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if _, err := c.Entry(t.Context(), r, r.Versions[0], in[2]); err != nil || f.calls.Load() != 1 {
		t.Errorf("got %v after %d calls", err, f.calls.Load())
	}
	_, err = c.Entry(t.Context(), r, r.Versions[0], in[1])
	if want := "conversion webhook for example.com/v1, Kind=Thing returned invalid object: must have the same name: a1 != other"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestCacheIsBounded(t *testing.T) {
	f := &fake{}
	c := New(Options{Call: f.call, CacheBytes: 200 << 10})
	r, in := hooked(), stored(t, 1000, 1000)
	for range 2 {
		if _, err := c.Entries(t.Context(), r, r.Versions[0], in); err != nil {
			t.Fatal(err)
		}
	}
	total := 0
	for _, e := range c.cache.mu.entries {
		total += cost(e)
	}
	if size := c.cache.size(); size > 200<<10 || size < 100<<10 || total != size {
		t.Errorf("%d bytes are accounted for, %d held", size, total)
	}
	if n := f.objects.Load(); n >= 2000 || n < 1500 {
		t.Errorf("%d objects were converted; some of 1000 should have been found", n)
	}
}

func TestPanicLandsFlights(t *testing.T) {
	f := &fake{before: func(context.Context, int, []object.Object) error { panic("broken") }}
	c := New(Options{Call: f.call})
	r := hooked()
	for _, n := range []int{1, 3 * maxBatch} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic got lost")
				}
			}()
			_, _ = c.Entries(t.Context(), r, r.Versions[0], stored(t, n, 0))
		}()
		if len(c.cache.mu.flights) != 0 {
			t.Errorf("%d flights are left", len(c.cache.mu.flights))
		}
	}
}

func TestFunction(t *testing.T) {
	r := twoVersions()
	c := New(Options{Functions: map[gvk.GroupKind]Function{{
		Group: "example.com", Kind: "Thing",
	}: func(_ context.Context, objs []object.Object, apiVersion string) ([]object.Object, error) {
		if objs[0]["spec"] == nil {
			return nil, errors.New("no spec")
		}
		out := object.Object{
			"apiVersion": apiVersion, "kind": "Thing", "metadata": objs[0]["metadata"],
			"spec": object.Object{"b": objs[0]["spec"].(object.Object)["a"], "unknown": "x"},
		}
		return []object.Object{out}, nil
	}}})
	obj := object.Object{
		"apiVersion": "example.com/v1", "kind": "Thing", "metadata": object.Object{"name": "n"},
		"spec": object.Object{"a": "1"},
	}
	out, err := c.Convert(t.Context(), r, r.Storage, r.Versions[0], obj)
	if err != nil || fmt.Sprint(out["spec"]) != "map[b:1]" {
		t.Errorf("got %v, %v", out, err)
	}
	delete(obj, "spec")
	if _, err := c.Convert(t.Context(), r, r.Storage, r.Versions[0], obj); err == nil ||
		err.Error() != "conversion function for example.com/v1, Kind=Thing failed: no spec" {
		t.Errorf("got %v", err)
	}
}

func TestUnknownStoredVersion(t *testing.T) {
	c := New(Options{Call: (&fake{}).call})
	r := hooked()
	e, err := watchcache.NewEntry("ns/a",
		[]byte(`{"apiVersion":"example.com/v0","kind":"Thing","metadata":{"name":"a"}}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Entry(t.Context(), r, r.Storage, e); err == nil ||
		err.Error() != "request to convert CR from an invalid group/version: example.com/v0" {
		t.Errorf("got %v", err)
	}
}

// BenchmarkConverted is a list of 1,000 objects that have been converted before.
func BenchmarkConverted(b *testing.B) {
	c := New(Options{Call: (&fake{}).call})
	r, in := hooked(), stored(b, 1000, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Entries(b.Context(), r, r.Versions[0], in); err != nil {
			b.Fatal(err)
		}
	}
}
