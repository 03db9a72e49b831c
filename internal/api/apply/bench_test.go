package apply

import (
	"testing"
)

func BenchmarkCreate(b *testing.B) {
	o := own1(b, widgets(b), "")
	b.Run("short", func(b *testing.B) {
		b.ReportAllocs()
		obj := widget(1)
		for b.Loop() {
			delete(obj["metadata"].(map[string]any), "managedFields")
			if err := o.Update(nil, obj, "bench", day); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("long", func(b *testing.B) {
		b.ReportAllocs()
		obj := widget(1)
		for b.Loop() {
			delete(obj["metadata"].(map[string]any), "managedFields")
			if err := o.updateLong(nil, obj, "bench", day); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkUpdateScalar(b *testing.B) {
	o := own1(b, widgets(b), "")
	live := widget(1)
	if err := o.Update(nil, live, "bench", day); err != nil {
		b.Fatal(err)
	}
	live = stored(live)
	managed := live["metadata"].(map[string]any)["managedFields"]
	obj := stored(live)
	obj["spec"].(map[string]any)["counter"] = int64(2)
	for name, update := range map[string]func() error{
		"short": func() error { return o.Update(live, obj, "other", day) },
		"long":  func() error { return o.updateLong(live, obj, "other", day) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				obj["metadata"].(map[string]any)["managedFields"] = managed
				if err := update(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkApply(b *testing.B) {
	o := own1(b, widgets(b), "")
	live := widget(1)
	if err := o.Update(nil, live, "bench", day); err != nil {
		b.Fatal(err)
	}
	live, err := o.Apply(stored(live), widget(2), "bench", true, day)
	if err != nil {
		b.Fatal(err)
	}
	live = stored(live)
	config := widget(3)
	for name, apply := range map[string]func() error{
		"again": func() error { _, err := o.Apply(live, config, "bench", true, day); return err },
		"first": func() error { _, err := o.Apply(live, config, "another", true, day); return err },
		"long":  func() error { _, err := o.applyLong(live, config, "bench", true, day); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := apply(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
