package main

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

const printed = `=== RUN   TestAggregationCost
    aggregation_cost_test.go:63: gets, HTTP/2   ReverseProxy       260 us of CPU each, 250 to 300
    aggregation_cost_test.go:63: gets, HTTP/2   bowsprit           295 us of CPU each, 290 to 400
    aggregation_cost_test.go:63: lists, HTTP/1  kube-apiserver    9600 us of CPU each, 9000 to 9900
--- PASS: TestAggregationCost (9.00s)
`

func TestRead(t *testing.T) {
	t.Parallel()
	bars, err := read(strings.NewReader(printed))
	if err != nil || len(bars) != 3 ||
		bars[1] != (bar{"gets, HTTP/2", "gets", "bowsprit", 295, 290, 400, "µs of CPU"}) {
		t.Errorf("%+v, %v", bars, err)
	}
	if _, err := read(strings.NewReader("ok\n")); err == nil {
		t.Error("no figures, and no error")
	}
}

// TestReadBenchmarks checks that the runs of one benchmark make one bar, and that the bars of one piece of work are
// adjacent.
func TestReadBenchmarks(t *testing.T) {
	t.Parallel()
	bars, err := read(strings.NewReader(`goos: linux
BenchmarkCreate/Widget/by=bowsprit-2         	   1000	      3000 ns/op	  10 B/op	 1 allocs/op
BenchmarkCreate/Widget/by=bowsprit-2         	   1000	      1000 ns/op	  10 B/op	 1 allocs/op
BenchmarkCreate/Widget/by=bowsprit-2         	   1000	      2000 ns/op	  10 B/op	 1 allocs/op
BenchmarkUpdate/by=bowsprit         	   1000	      12.5 ns/op
BenchmarkCreate/Widget/by=kubernetes-2         	   1000	      9000 ns/op	  10 B/op	 1 allocs/op
BenchmarkAlone-2         	   1000	      9000 ns/op
`))
	want := []bar{
		{"Create/Widget", "Create/Widget", "bowsprit", 2, 1, 3, "µs"},
		{"Create/Widget", "Create/Widget", "kubernetes", 9, 9, 9, "µs"},
		{"Update", "Update", "bowsprit", 0.0125, 0.0125, 0.0125, "µs"},
	}
	if err != nil || !slices.Equal(bars, want) {
		t.Errorf("%+v, %v\nwant %+v", bars, err, want)
	}
}

func TestReadWorkloads(t *testing.T) {
	t.Parallel()
	bars, err := read(strings.NewReader("    w_test.go:83: Kubernetes and kwok: one pod available after 1.2s; 30 pods on " +
		"3 nodes after 1m10.3s, 3 a second; 756 MB in 5 processes\n"))
	want := []bar{
		{"30 pods on 3 nodes available", "30 pods on 3 nodes available", "Kubernetes and kwok", 70.3, 70.3, 70.3, "s"},
		{"30 pods on 3 nodes, memory", "30 pods on 3 nodes, memory", "Kubernetes and kwok", 756, 756, 756, "MB"},
	}
	if err != nil || !slices.Equal(bars, want) {
		t.Errorf("%+v, %v\nwant %+v", bars, err, want)
	}
}

// TestDraw checks that the picture is XML, with a title, a description with all figures, and bars that fit the width.
func TestDraw(t *testing.T) {
	t.Parallel()
	bars, err := read(strings.NewReader(printed))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := draw(&out, "A < B", bars); err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(out.String())); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
	}
	for _, want := range []string{
		"A &lt; B</title>", "gets, HTTP/2: ReverseProxy 260 µs of CPU (250 to 300). bowsprit 295 µs of CPU (290 to 400).",
		`class="other"`,
		`class="ours" x="150" y="54" width="295.0"`, `x2="550.0"`, "prefers-color-scheme: dark", `role="img"`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %s in\n%s", want, out.String())
		}
	}
}
