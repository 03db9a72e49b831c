package main

import (
	"encoding/xml"
	"errors"
	"io"
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
	if err != nil || len(bars) != 3 || bars[1] != (bar{"gets, HTTP/2", "gets", "bowsprit", 295, 290, 400}) {
		t.Errorf("%+v, %v", bars, err)
	}
	if _, err := read(strings.NewReader("ok\n")); err == nil {
		t.Error("no figures, and no error")
	}
}

// The picture is XML, has a title, a description with all figures, and bars of which the largest stays in its room.
func TestDraw(t *testing.T) {
	t.Parallel()
	bars, err := read(strings.NewReader(printed))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := draw(&out, "A < B", "µs", bars); err != nil {
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
		"A &lt; B, µs</title>", "gets, HTTP/2: ReverseProxy 260 (250 to 300). bowsprit 295 (290 to 400).",
		`class="ours" x="130" y="54" width="295.0"`, `x2="530.0"`, "prefers-color-scheme: dark", `role="img"`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %s in\n%s", want, out.String())
		}
	}
}
