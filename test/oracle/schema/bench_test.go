package schema

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/test/oracle/fixture"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// sample is a definition's version and an object of it.
type sample struct {
	name  string
	props *apiextensionsv1.JSONSchemaProps
	obj   map[string]any
}

// samplesOf returns the objects of testdata with their schemas.
func samplesOf(tb testing.TB) (out []sample) {
	tb.Helper()
	widget, err := os.ReadFile("testdata/widget-crd.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	definitions := append(fixture.Definitions(tb), fixture.Definition(tb, widget))
	fixture.UpjetDefinitions(tb, 1, func(name string, d *apiextensionsv1.CustomResourceDefinition) bool {
		if strings.HasSuffix(name, "ec2.aws.upbound.io_instances.yaml") {
			definitions = append(definitions, d)
			return false
		}
		return true
	})
	for _, name := range []string{"certificate", "prometheus", "application", "httproute", "instance", "widget"} {
		data, err := os.ReadFile("testdata/" + name + ".yaml")
		if err != nil {
			tb.Fatal(err)
		}
		text, err := yaml.YAMLToJSON(data)
		if err != nil {
			tb.Fatal(err)
		}
		obj := decode(text).(map[string]any)
		found := false
		for _, d := range definitions {
			for _, v := range d.Spec.Versions {
				if d.Spec.Names.Kind == obj["kind"] && d.Spec.Group+"/"+v.Name == obj["apiVersion"] {
					out, found = append(out, sample{name, v.Schema.OpenAPIV3Schema, obj}), true
				}
			}
		}
		if !found {
			tb.Fatalf("no definition for %s", name)
		}
	}
	return out
}

// TestSamples holds that the benchmarks measure valid objects, on both sides.
func TestSamples(t *testing.T) {
	for _, s := range samplesOf(t) {
		t.Run(s.name, func(t *testing.T) {
			up, err := newUpstream(s.props, false)
			if err != nil {
				t.Fatal(err)
			}
			our, err := schema.Compile(s.props, schema.Options{})
			if err != nil {
				t.Fatal(err)
			}
			obj := kruntime.DeepCopyJSON(s.obj)
			unknown, err := up.shape(obj, false, true)
			if err != nil || len(unknown) > 0 {
				t.Fatal(unknown, err)
			}
			if errs := up.validate(obj, nil); len(errs) > 0 {
				t.Fatal(errs)
			}
			c := &comparison{T: t, props: s.props, name: s.name, up: up, our: our}
			c.shape(s.obj)
			if errs := our.Validate(obj, nil); len(errs) > 0 {
				t.Fatal(errs)
			}
			if n := testing.AllocsPerRun(5, func() { our.NormalizeRequest(obj); our.Validate(obj, nil) }); n > 0 {
				t.Errorf("%v allocations for an object that is already in shape", n)
			}
		})
	}
}

// BenchmarkCreate measures prune + default + validate of a create, as the request handler calls it. The copy that each
// round needs is not counted.
func BenchmarkCreate(b *testing.B) {
	for _, s := range samplesOf(b) {
		up, err := newUpstream(s.props, false)
		if err != nil {
			b.Fatal(err)
		}
		our, err := schema.Compile(s.props, schema.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(s.name+"/by=bowsprit", func(b *testing.B) {
			each(b, s.obj, func(obj map[string]any) {
				our.NormalizeRequest(obj)
				our.Validate(obj, nil)
			})
		})
		b.Run(s.name+"/by=kubernetes", func(b *testing.B) {
			each(b, s.obj, func(obj map[string]any) {
				up.shape(obj, false, true)
				up.validate(obj, nil)
			})
		})
	}
}

// BenchmarkUpdate measures validation of an update without changes, the most frequent write.
func BenchmarkUpdate(b *testing.B) {
	for _, s := range samplesOf(b) {
		up, err := newUpstream(s.props, false)
		if err != nil {
			b.Fatal(err)
		}
		our, err := schema.Compile(s.props, schema.Options{})
		if err != nil {
			b.Fatal(err)
		}
		our.Normalize(s.obj)
		old := kruntime.DeepCopyJSON(s.obj)
		b.Run(s.name+"/by=bowsprit", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				our.Validate(s.obj, old)
			}
		})
		b.Run(s.name+"/by=kubernetes", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				up.validate(s.obj, old)
			}
		})
	}
}

// each runs f on copies of obj, which are made with the clock stopped.
func each(b *testing.B, obj map[string]any, f func(map[string]any)) {
	b.ReportAllocs()
	const batch = 64
	copies := make([]map[string]any, batch)
	for i := 0; i < b.N; i += batch {
		b.StopTimer()
		for k := range copies {
			copies[k] = kruntime.DeepCopyJSON(obj)
		}
		b.StartTimer()
		for k := 0; k < batch && i+k < b.N; k++ {
			f(copies[k])
		}
	}
}

// BenchmarkCompile compiles every version of the real definitions and reports the memory that the programs hold.
func BenchmarkCompile(b *testing.B) {
	var all []*apiextensionsv1.JSONSchemaProps
	for _, d := range fixture.Definitions(b) {
		for _, v := range d.Spec.Versions {
			if v.Schema != nil {
				all = append(all, v.Schema.OpenAPIV3Schema)
			}
		}
	}
	measure := func(b *testing.B, compile func(*apiextensionsv1.JSONSchemaProps) any) {
		b.ReportAllocs()
		var held []any
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for b.Loop() {
			held = held[:0]
			for _, props := range all {
				held = append(held, compile(props))
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/float64(len(all)), "held-B/schema")
		runtime.KeepAlive(held)
	}
	b.Run("by=bowsprit", func(b *testing.B) {
		measure(b, func(p *apiextensionsv1.JSONSchemaProps) any {
			s, err := schema.Compile(p, schema.Options{})
			if err != nil {
				b.Fatal(err)
			}
			return s
		})
	})
	b.Run("by=kubernetes", func(b *testing.B) {
		measure(b, func(p *apiextensionsv1.JSONSchemaProps) any {
			u, err := newUpstream(p, false)
			if err != nil {
				b.Fatal(err)
			}
			return u
		})
	})
}
