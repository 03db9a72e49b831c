package cel

import (
	"context"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	upstreamcel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel"
	"github.com/bowsprit/bowsprit/test/oracle/fixture"
)

// definitionsWithRules returns the schemas with rules of a sample of upjet's definitions, and of all others.
func definitionsWithRules(b *testing.B) (upjet, others []*apiextensionsv1.JSONSchemaProps) {
	add := func(to *[]*apiextensionsv1.JSONSchemaProps) func(*apiextensionsv1.CustomResourceDefinition) {
		return func(d *apiextensionsv1.CustomResourceDefinition) {
			for _, v := range d.Spec.Versions {
				s, err := schema.Compile(v.Schema.OpenAPIV3Schema, schema.Options{})
				if err != nil {
					b.Fatal(err)
				}
				if cel.New(s.Root(), true) != nil {
					*to = append(*to, v.Schema.OpenAPIV3Schema)
				}
			}
		}
	}
	fixture.UpjetDefinitions(b, 20,
		func(_ string, d *apiextensionsv1.CustomResourceDefinition) bool { add(&upjet)(d); return true })
	for _, d := range fixture.Definitions(b) {
		add(&others)(d)
	}
	return upjet, others
}

// BenchmarkCheck checks the rules of one schema. Upstream's part is cel.Compile on each place with rules, with the
// types that validation.ValidateCustomResourceDefinition makes for it; all else that does is not counted.
func BenchmarkCheck(b *testing.B) {
	upjet, others := definitionsWithRules(b)
	for _, set := range []struct {
		name    string
		schemas []*apiextensionsv1.JSONSchemaProps
	}{{"upjet", upjet}, {"others", others}} {
		b.Run(set.name+"/by=bowsprit", func(b *testing.B) {
			var roots []*schema.Node
			for _, p := range set.schemas {
				s, err := schema.Compile(p, schema.Options{})
				if err != nil {
					b.Fatal(err)
				}
				roots = append(roots, s.Root())
			}
			cel.Check(roots[0], field.NewPath("x"), cel.CheckOptions{})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if errs := cel.Check(roots[i%len(roots)], field.NewPath("x"), cel.CheckOptions{}); len(errs) > 0 {
					b.Fatal(errs)
				}
			}
		})
		b.Run(set.name+"/by=kubernetes", func(b *testing.B) {
			var roots []*structuralschema.Structural
			for _, p := range set.schemas {
				u, err := newUpstream(p)
				if err != nil {
					b.Fatal(err)
				}
				roots = append(roots, u.structural)
			}
			env := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				compileAll(b, roots[i%len(roots)], env, true)
			}
		})
	}
}

func compileAll(b *testing.B, s *structuralschema.Structural, env *environment.EnvSet, root bool) {
	if len(s.XValidations) > 0 {
		results, err := upstreamcel.Compile(s, model.SchemaDeclType(s, root), celconfig.PerCallLimit, env,
			upstreamcel.NewExpressionsEnvLoader())
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range results {
			if r.Error != nil {
				b.Fatal(r.Error)
			}
		}
	}
	for _, p := range s.Properties {
		compileAll(b, &p, env, false)
	}
	if s.Items != nil {
		compileAll(b, s.Items, env, false)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		compileAll(b, s.AdditionalProperties.Structural, env, false)
	}
}

// BenchmarkEvaluate evaluates the rules of Gateway API kinds and others on valid objects, as a create and as an update.
func BenchmarkEvaluate(b *testing.B) {
	for _, s := range samples(b) {
		up, err := newUpstream(s.props)
		if err != nil {
			b.Fatal(err)
		}
		structuraldefaulting.Default(s.obj, up.compile().structural)
		compiled, err := schema.Compile(s.props, schema.Options{})
		if err != nil {
			b.Fatal(err)
		}
		our := cel.New(compiled.Root(), true)
		for _, old := range []map[string]any{nil, s.obj} {
			name := fmt.Sprintf("%s/%s/", s.name, map[bool]string{true: "create", false: "update"}[old == nil])
			b.Run(name+"by=bowsprit", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if errs := our.Evaluate(context.Background(), s.obj, old, nil); len(errs) > 0 {
						b.Fatal(errs)
					}
				}
			})
			b.Run(name+"by=bowsprit-counted", func(b *testing.B) {
				var before any
				if old != nil {
					before = old
				}
				b.ReportAllocs()
				for b.Loop() {
					if errs, _ := our.EvaluateAt(nil, s.obj, before, cel.EvalOptions{}); len(errs) > 0 {
						b.Fatal(errs)
					}
				}
			})
			b.Run(name+"by=kubernetes", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if errs, _, _ := up.evaluate(s.obj, old, true, celconfig.RuntimeCELCostBudget); len(errs) > 0 {
						b.Fatal(errs)
					}
				}
			})
		}
	}
}

// BenchmarkRequest measures prune, default, validate and rules together, as the request handler calls them, for a
// create and for an update without changes. It does not count the copies for each round.
func BenchmarkRequest(b *testing.B) {
	for _, s := range samples(b) {
		up, err := newUpstream(s.props)
		if err != nil {
			b.Fatal(err)
		}
		values, _, err := apiservervalidation.NewSchemaValidator(up.internal)
		if err != nil {
			b.Fatal(err)
		}
		structuraldefaulting.Default(s.obj, up.compile().structural)
		our, err := schema.Compile(s.props, schema.Options{Rules: cel.Compile})
		if err != nil {
			b.Fatal(err)
		}
		for _, old := range []map[string]any{nil, s.obj} {
			name := fmt.Sprintf("%s/%s/", s.name, map[bool]string{true: "create", false: "update"}[old == nil])
			b.Run(name+"by=bowsprit", func(b *testing.B) {
				copies(b, s.obj, func(obj map[string]any) field.ErrorList {
					our.NormalizeRequest(obj)
					return our.Validate(obj, old)
				})
			})
			b.Run(name+"by=kubernetes", func(b *testing.B) {
				copies(b, s.obj, func(obj map[string]any) field.ErrorList { return up.request(values, obj, old) })
			})
		}
	}
}

// copies runs f on copies of obj, which are made with the clock stopped.
func copies(b *testing.B, obj map[string]any, f func(map[string]any) field.ErrorList) {
	b.ReportAllocs()
	batch := make([]map[string]any, 64)
	for i := 0; i < b.N; i += len(batch) {
		b.StopTimer()
		for k := range batch {
			batch[k] = runtime.DeepCopyJSON(obj)
		}
		b.StartTimer()
		for k := 0; k < len(batch) && i+k < b.N; k++ {
			if errs := f(batch[k]); len(errs) > 0 {
				b.Fatal(errs)
			}
		}
	}
}

type sample struct {
	name  string
	props *apiextensionsv1.JSONSchemaProps
	obj   map[string]any
}

// samples returns objects with their schemas: the objects with rules in the benchmarks of package schema, and a
// Gateway.
func samples(tb testing.TB) (out []sample) {
	definitions := fixture.Definitions(tb)
	fixture.UpjetDefinitions(tb, 1, func(_ string, d *apiextensionsv1.CustomResourceDefinition) bool {
		if d.Name != "instances.ec2.aws.upbound.io" {
			return true
		}
		definitions = append(definitions, d)
		return false
	})
	widget := load[*apiextensionsv1.CustomResourceDefinition](tb, "../../schema/testdata/widget-crd.yaml")
	at(widget.Spec.Versions[0].Schema.OpenAPIV3Schema, "spec", func(p *apiextensionsv1.JSONSchemaProps) {
		p.XValidations = apiextensionsv1.ValidationRules{
			{Rule: "self.counter >= 0", Message: "counter must not be negative"},
			{Rule: "!has(self.items) || self.items.all(i, i.name.startsWith('item-'))"},
		}
	})
	definitions = append(definitions, widget)
	for _, file := range []string{
		"gateway.yaml", "../../schema/testdata/httproute.yaml", "../../schema/testdata/instance.yaml",
		"../../schema/testdata/widget.yaml",
	} {
		obj := load[map[string]any](tb, file)
		for _, d := range definitions {
			for _, v := range d.Spec.Versions {
				if s, err := schema.Compile(v.Schema.OpenAPIV3Schema, schema.Options{}); err != nil ||
					cel.New(s.Root(), true) == nil {
					continue
				}
				if d.Spec.Names.Kind == obj["kind"] && d.Spec.Group+"/"+v.Name == obj["apiVersion"] {
					out = append(out, sample{d.Spec.Names.Kind, v.Schema.OpenAPIV3Schema, obj})
				}
			}
		}
	}
	return out
}
