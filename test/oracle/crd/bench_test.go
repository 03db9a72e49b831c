package crd

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/test/oracle/fixture"
)

// benchDefinitions are the largest available definitions, one with many rules, and the smallest.
var benchDefinitions = []string{
	"crontab", "applicationset-crd.yaml", "monitoring.coreos.com_prometheuses.yaml", "cert-manager.io_issuers.yaml",
	"gateway.networking.k8s.io_httproutes.yaml",
}

// BenchmarkValidate validates a new definition; upstream's side includes the conversion to its internal type, as a
// request does.
func BenchmarkValidate(b *testing.B) {
	all := realDefinitions(b)
	for _, name := range benchDefinitions {
		if all[name] == nil {
			continue
		}
		raw := mustJSON(all[name])
		theirs, _, err := decodeUpstream(raw)
		if err != nil {
			b.Fatal(err)
		}
		apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(theirs)
		b.Run(name+"/by=bowsprit", func(b *testing.B) {
			b.ReportAllocs()
			v := crd.NewValidator()
			for b.Loop() {
				if errs := v.Validate(theirs); len(errs) > 0 {
					b.Fatal(errs)
				}
			}
		})
		b.Run(name+"/by=kubernetes", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if errs, _ := validateUpstream(theirs, nil); len(errs) > 0 {
					b.Fatal(errs)
				}
			}
		})
	}
}

// BenchmarkDecode decodes a body into the input of validation. Ours starts from decoded JSON, which a request has
// anyway, and includes the search for unknown fields.
func BenchmarkDecode(b *testing.B) {
	all := realDefinitions(b)
	for _, name := range benchDefinitions {
		if all[name] == nil {
			continue
		}
		raw := mustJSON(all[name])
		b.Run(name+"/by=bowsprit", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				var obj map[string]any
				if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &obj); err != nil {
					b.Fatal(err)
				}
				if _, err := crd.Normalize(obj); err != nil {
					b.Fatal(err)
				}
				if _, err := crd.Decode(obj); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/by=kubernetes", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if _, _, err := decodeUpstream(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
		stored := mustJSON(all[name])
		b.Run(name+"/head", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(stored)))
			for b.Loop() {
				if _, err := crd.DecodeWithoutSchemas(stored); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/schema", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(stored)))
			for b.Loop() {
				if _, err := crd.DecodeSchema(stored, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStart makes catalog resources of a tenth of the large provider's definitions.
func BenchmarkStart(b *testing.B) {
	var raws [][]byte
	size := 0
	fixture.Upjet(b, 10, func(name string, data []byte) bool {
		raw, err := yaml.YAMLToJSON(data)
		if err != nil {
			b.Fatal(name, err)
		}
		raws = append(raws, raw)
		size += len(raw)
		return true
	})
	if len(raws) == 0 {
		b.Skip("no upjet definitions beside the repository")
	}
	b.ReportAllocs()
	b.SetBytes(int64(size))
	for b.Loop() {
		for _, raw := range raws {
			def, err := crd.DecodeWithoutSchemas(raw)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := crd.Resource(def, 1, func() ([]byte, error) { return raw, nil }); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(len(raws)), "us/definition")
}
