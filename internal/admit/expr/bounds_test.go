package expr

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
)

// TestCallsAreBounded evaluates calls that would take minutes or gigabytes, and expects errors.
func TestCallsAreBounded(t *testing.T) {
	t.Parallel()
	list := make([]any, 20_000)
	for i := range list {
		list[i] = fmt.Sprint("s", i)
	}
	in := &Input{Object: map[string]any{
		"a": strings.Repeat("a", 300_000), "k": strings.Repeat("k", 3000), "list": list,
		"pattern": strings.Repeat("(?:a{10}){100}", 3000),
	}}
	for source, want := range map[string]string{
		`'x'.matches(object.pattern)`:                           "more than 500000 instructions",
		`object.a.replace('a', object.k) == ''`:                 "replace: the result would be longer",
		`'%.999999999f'.format([1.0]) == ''`:                    "format: the result would be longer",
		`object.list.map(x, object.list).flatten() == []`:       "flatten: the list has more",
		`lists.range(1000000000) == []`:                         "running out of cost budget",
		`sets.equivalent(object.list, object.list) || true`:     "running out of cost budget",
		`object.a.matches('^a+$') && object.a.indexOf('b') < 0`: "",
	} {
		c := &Compiler{}
		e := c.Compile(source, Scope{}, New, cel.BoolType)
		if e.Err != nil {
			t.Errorf("%s: %v", source, e.Err)
			continue
		}
		results, _, err := Run(t.Context(), []*Expression{e}, in, Budget)
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case results[0].Err != nil:
			got = results[0].Err.Error()
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %.300q, want %q", source, got, want)
		}
	}
}
