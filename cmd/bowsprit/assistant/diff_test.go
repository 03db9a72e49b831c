package assistant

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestDifference compares values, some with masks.
func TestDifference(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, after, shownBefore, shownAfter, want string }{
		"equal":   {before: "a: 1", after: "a: 1"},
		"scalars": {before: "{a: 1, b: x, c: 2}", after: "{a: 2, c: 2, d: true}", want: "~ a: 1 -> 2\n- b: \"x\"\n+ d: true"},
		"nested": {before: "a: {b: {c: 1}, x.y/z: 1}", after: "a: {b: {c: 2}, x.y/z: 2}",
			want: "~ a.b.c: 1 -> 2\n~ a[\"x.y/z\"]: 1 -> 2"},
		"named": {before: "l: [{name: a, v: 1}, {name: b, v: 1}]", after: "l: [{name: c}, {name: b, v: 2}, {name: a, v: 1}]",
			want: "~ l[name=b].v: 1 -> 2\n+ l[name=c]: {\"name\":\"c\"}\n~ l: the order of the items"},
		"numbered": {before: "l: [1, 2]", after: "l: [1, 3, 4]", want: "~ l[1]: 2 -> 3\n+ l[2]: 4"},
		"twice":    {before: "l: [{name: a}, {name: a}]", after: "l: [{name: a}]", want: `- l[1]: {"name":"a"}`},
		"types":    {before: "a: {b: 1}", after: "a: [1]", want: `~ a: {"b":1} -> [1]`},
		"quotes":   {before: "l: [{name: \"a]\\nb\", v: 1}]", after: "l: [{name: \"a]\\nb\", v: 2}]", want: `~ l[name="a]\nb"].v: 1 -> 2`},
		"masked value": {before: "{p: one}", after: "{p: two}", shownBefore: "{p: <m>}", shownAfter: "{p: <m>}",
			want: `~ p: "<m>" -> "<m>"`},
		"masked object": {before: "{p: {k: 1}}", after: "{p: {k: 2}}", shownBefore: "{p: <m>}", shownAfter: "{p: <m>}",
			want: `~ p: "<m>" -> "<m>"`},
		"masked list": {before: "{p: [1]}", after: "{p: [1, 2]}", shownBefore: "{p: <m>}", shownAfter: "{p: <m>}",
			want: `~ p: "<m>" -> "<m>"`},
		"masked item": {before: "{p: [{name: a, s: 1}]}", after: "{p: [{name: a, s: 2}]}",
			shownBefore: "{p: [{name: a, s: <m>}]}", shownAfter: "{p: [{name: a, s: <m>}]}", want: `~ p[name=a].s: "<m>" -> "<m>"`},
		"masked name": {before: "{p: [{name: a}]}", after: "{p: [{name: b}]}", shownBefore: "{p: [{name: <m>}]}",
			shownAfter: "{p: [{name: <m>}]}", want: `~ p[name="<m>"].name: "<m>" -> "<m>"`},
	} {
		parse := func(text, otherwise string) (v any) {
			if text == "" {
				text = otherwise
			}
			if err := yaml.Unmarshal([]byte(text), &v); err != nil {
				t.Fatal(err)
			}
			return v
		}
		d := &difference{}
		d.compare("", state{parse(c.before, ""), parse(c.shownBefore, c.before)},
			state{parse(c.after, ""), parse(c.shownAfter, c.after)})
		if got := strings.Join(d.lines, "\n"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}
