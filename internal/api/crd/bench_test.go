package crd

import "testing"

const largest = "applicationset-crd.yaml"

func BenchmarkNormalize(b *testing.B) {
	raw := realDefinitions(b)[largest]
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		obj := object(b, raw)
		b.StartTimer()
		if _, err := Normalize(obj); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	obj := object(b, realDefinitions(b)[largest])
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(obj); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeHead(b *testing.B) {
	raw := realDefinitions(b)[largest]
	b.ReportAllocs()
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := DecodeWithoutSchemas(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeSchema(b *testing.B) {
	raw := realDefinitions(b)[largest]
	b.ReportAllocs()
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := DecodeSchema(raw, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	def, err := DecodeJSON(realDefinitions(b)[largest])
	if err != nil {
		b.Fatal(err)
	}
	SetDefaults(def)
	v := NewValidator()
	b.ReportAllocs()
	for b.Loop() {
		if errs := v.Validate(def); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}
