package stage

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func objectOf(json string) *Object { return &Object{JSON: []byte(json), Now: noon} }

func must(t *testing.T, spec string) *Stage {
	t.Helper()
	s, err := stageOf(t, "resourceRef: {kind: Pod}\n"+spec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestChoose checks the random choice by weight among the matching Stages. A Stage that cannot be evaluated is reported
// and does not match.
func TestChoose(t *testing.T) {
	t.Parallel()
	stages := func(specs ...string) (l Life) {
		for i, spec := range specs {
			s := must(t, spec)
			s.Name = string(rune('a' + i))
			l = append(l, s)
		}
		return l
	}
	const all = "selector: {}"
	broken := "selector: {matchExpressions: [{cel: {expression: self.no.such == 1}}]}"
	for name, c := range map[string]struct {
		life Life
		want string // for the random numbers 0, 1, ...
		err  string
	}{
		"none":           {stages("next: {delete: true}"), "----", ""},
		"one":            {stages(all), "aaaa", ""},
		"weights":        {stages(all+"\nweight: 1", all+"\nweight: 3"), "abbb", ""},
		"no weights":     {stages(all, all, all), "abc", ""},
		"0 beside 1":     {stages(all, all+"\nweight: 1"), "bbb", ""},
		"unclear":        {stages(all+"\nweightFrom: {expressionFrom: .text}", all), "bbb", ""},
		"all unclear":    {stages(all+"\nweightFrom: {expressionFrom: .text}", all+"\nweightFrom: {expressionFrom: .text}"), "ab", ""},
		"from":           {stages(all+"\nweight: 9\nweightFrom: {expressionFrom: .three}", all+"\nweight: 1"), "aaab", ""},
		"counted":        {stages(all+"\nweightFrom: {jq: {expression: .list | length}}", all+"\nweight: 1"), "aab", ""},
		"cel":            {stages(all+"\nweightFrom: {cel: {expression: size(self.list)}}", all+"\nweight: 1"), "aab", ""},
		"negative":       {stages(all+"\nweightFrom: {expressionFrom: .minus}", all+"\nweight: 1"), "bb", ""},
		"one that fails": {stages(broken, all), "bb", "stage a: cel"},
		"no end": {stages("selector: {matchExpressions: [{key: 'def f: f; f', operator: Exists}]}", all), "b",
			"stage a: jq \"def f: f; f\": it takes more than 250000 steps"},
	} {
		got := ""
		for n := range len(c.want) {
			s, err := c.life.Choose(t.Context(), objectOf(`{"text":"many","three":"3","minus":-4,"list":[1,2]}`),
				func(most int64) int64 { return min(int64(n), most-1) })
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("%s: error %v", name, err)
			}
			var failure *Failure
			if err != nil && (!errors.As(err, &failure) || failure.Stage.Name != "a") {
				t.Errorf("%s: the error names no Stage: %v", name, err)
			}
			if s == nil {
				got += "-"
				continue
			}
			got += s.Name
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestDelays checks delays that are fixed or read from the object, with and without a range.
func TestDelays(t *testing.T) {
	t.Parallel()
	object := `{"metadata":{"creationTimestamp":"2026-01-01T11:59:00Z"},"d":"7s","at":"2026-01-01T12:00:30Z","bad":"soon"}`
	for delay, want := range map[string]string{
		"{}":                           "0s",
		"{durationMilliseconds: 1500}": "1.5s",
		"{durationMilliseconds: 1500, jitterDurationMilliseconds: 500}":                             "500ms",
		"{durationMilliseconds: 1000, jitterDurationMilliseconds: 5000}":                            "1s-5s",
		"{durationFrom: {expressionFrom: .d}, durationMilliseconds: 1}":                             "7s",
		"{durationFrom: {expressionFrom: .none}, durationMilliseconds: 1000}":                       "1s",
		"{durationFrom: {expressionFrom: .bad}, durationMilliseconds: 1000}":                        "1s",
		"{durationMilliseconds: 1000, jitterDurationFrom: {jq: {expression: .at}}}":                 "1s-30s",
		"{durationFrom: {cel: {expression: 'timestamp(self.at) - Now()'}}}":                         "30s",
		"{durationFrom: {cel: {expression: \"duration(self.d)\"}}}":                                 "7s",
		"{durationFrom: {cel: {expression: \"self.d\"}}}":                                           "7s",
		"{durationFrom: {cel: {expression: 'int(SinceSecond(self)) * 1000000000'}}}":                "1m0s",
		"{durationFrom: {cel: {expression: 'UnixSecond(Now()) > 1767268799.0 ? \"2s\" : \"3s\"'}}}": "2s",
		"{durationFrom: {cel: {expression: 'self.none'}}}":                                          "no such key: none",
		"{durationFrom: {cel: {expression: 'true'}}}":                                               "is of type bool, not duration",
	} {
		from, to, _, err := must(t, "delay: "+delay).Delays(context.Background(), objectOf(object))
		got := from.String()
		if to != from {
			got += "-" + to.String()
		}
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%s: %s, want %s", delay, got, want)
		}
	}
	d, err := must(t, "delay: {durationMilliseconds: 1000, jitterDurationMilliseconds: 5000}").Delay(t.Context(),
		objectOf("{}"), func(n int64) int64 { return n - 1 })
	if err != nil || d != 5*time.Second-1 {
		t.Errorf("the longest of 1s-5s: %s, %v", d, err)
	}
}

// TestTemplates checks that the output of a template is bounded, and that templates call the server's functions.
func TestTemplates(t *testing.T) {
	t.Parallel()
	s := must(t, "next: {statusTemplate: '{{ range until 1000 }}{{ repeat 10000 \"x\" }}{{ end }}'}")
	if _, err := s.Steps(objectOf("{}"), nil); err == nil || !strings.Contains(err.Error(), "more than 1572864 bytes") {
		t.Errorf("too much: %v", err)
	}
	s = must(t, "next: {statusTemplate: 'at: {{ Now }}'}")
	if _, err := s.Steps(objectOf("{}"), nil); err == nil || !strings.Contains(err.Error(), "not to be had here") {
		t.Errorf("without functions: %v", err)
	}
	acts, err := s.Steps(objectOf("{}"), Functions{"Now": func() string { return Time(noon) }})
	if err != nil || len(acts) != 1 || string(acts[0].Patch.Data) != `{"status":{"at":"2026-01-01T12:00:00Z"}}` ||
		acts[0].Patch.Type != "application/strategic-merge-patch+json" || acts[0].Patch.Subresource != "status" {
		t.Errorf("acts %+v, %v", acts, err)
	}
}

// Texts of CEL are replaced and joined as cel-go does it.
func TestTextsOfCEL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"abab".replace("a", "c")`: "cbcb", `"abab".replace("a", "c", 1)`: "cbab", `"ab".replace("", "-")`: "-a-b-",
		`"abab".replace("a", "c", -1)`: "cbcb",
		`["a", "b"].join()`:            "ab", `["a", "b"].join("-")`: "a-b", `[].join("-")`: "",
		`self.a.replace("x", "y").split("y").join("z")`: "1z2", `self.a.lowerAscii() + "c"`: "1x2c",
	} {
		p, err := compileCEL(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		v, err := p.eval(t.Context(), objectOf(`{"a":"1x2"}`))
		if err != nil || v.Value() != want {
			t.Errorf("%s: %v, %v; want %s", text, v, err, want)
		}
	}
}
