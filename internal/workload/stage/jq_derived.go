package stage

import (
	"fmt"
	"strings"

	"github.com/itchyny/gojq"
)

// derived are functions of jq that call an expression for each of many values, or that jq defines with assignments. The
// definitions call bounded functions only, so each spends the budget. f is the name of the function itself.
var derived = map[string]string{
	"match/1":   "def f($re): _matches($re; null)[];",
	"match/2":   "def f($re; $flags): _matches($re; $flags)[];",
	"capture/1": "def f($re): _matches($re; null)[] | .captures | _captures;",
	"capture/2": "def f($re; $flags): _matches($re; $flags)[] | .captures | _captures;",
	"scan/1":    `def f($re): scan($re; "");`,
	"scan/2": `def f($re; $flags): _matches($re; $flags + "g")[] |
		if .captures == [] then .string else [.captures[].string] end;`,
	"splits/1": "def f($re): split($re; null)[];",
	"splits/2": "def f($re; $flags): split($re; $flags)[];",
	"sub/2":    "def f($re; str): sub($re; str; null);",
	"sub/3": `def f($re; str; $flags): . as $in |
		reduce _matches($re; $flags)[] as $m ([0, []]; . as $state | [$m.captures | _captures | str] as $new |
			[$m.offset + $m.length, [range([$new, $state[1] | length] | max) as $i | ($state[1][$i] // "") +
				if $i < ($new | length) then $in[$state[0]:$m.offset] + $new[$i] else "" end]]) |
		. as $end | $end[1][] + $in[$end[0]:] // $in;`,
	"gsub/2":      `def f($re; str): sub($re; str; "g");`,
	"gsub/3":      `def f($re; str; $flags): sub($re; str; $flags + "g");`,
	"sort_by/1":   "def f(g): _sort_by(map([g]));",
	"group_by/1":  "def f(g): _group_by(map([g]));",
	"unique_by/1": "def f(g): _unique_by(map([g]));",
	"min_by/1":    "def f(g): _min_by(map([g]));",
	"max_by/1":    "def f(g): _max_by(map([g]));",
	"walk/1": `def f(g): def w: if type == "array" then map(w) elif type == "object" then
		[to_entries[] | .key as $k | first(.value | w) | {key: $k, value: .}] | from_entries end | g; w;`,
	"paths/0": "def f: def p: (try keys catch empty)[] as $k | [$k], (.[$k] | p | [$k] + .); p;",
	"paths/1": "def f(g): def p: (try keys catch empty)[] as $k | (.[$k] | select(g) | [$k]), (.[$k] | p | [$k] + .); p;",
}

// derivedName is the name of a derived function in a compiled expression.
func derivedName(name string) string {
	word, _, _ := strings.Cut(name, "/")
	return fmt.Sprintf("_derived_%s%c", word, name[len(name)-1])
}

// derive adds the definition of a builtin that is itself written in jq (derived) to the expression, after the
// definitions that it calls.
func (b *binder) derive(name string) error {
	if b.has[name] {
		return nil
	}
	parsed, err := gojq.Parse(derived[name] + " .")
	if err != nil {
		return err
	}
	d := parsed.FuncDefs[0]
	d.Name = derivedName(name)
	inner := &binder{derives: true, has: b.has, defs: b.defs} // it sees no function of the expression
	if err := inner.define(d); err != nil {
		return err
	}
	b.has[name], b.defs = true, append(inner.defs, d)
	return nil
}

// deletion binds del of constant paths.
func (b *binder) deletion(t *gojq.Term) error {
	paths, ok := plainPaths(t.Func.Args[0])
	if !ok {
		return fmt.Errorf("a Stage can use del only with constant paths such as .metadata.labels[\"a\"]")
	}
	*t = *called("_delpaths/1", list(paths...)).Term
	return nil
}

// list returns the expression of a list.
func list(of ...*gojq.Query) *gojq.Query {
	a := &gojq.Array{}
	for _, q := range of {
		if a.Query != nil {
			q = &gojq.Query{Left: a.Query, Op: gojq.OpComma, Right: q}
		}
		a.Query = q
	}
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeArray, Array: a}}
}

// plainPaths returns the constant paths of an expression such as .a.b, .c["d"][0], as lists.
func plainPaths(q *gojq.Query) (paths []*gojq.Query, ok bool) {
	if q.Op == gojq.OpComma && len(q.FuncDefs) == 0 {
		left, ok := plainPaths(q.Left)
		right, also := plainPaths(q.Right)
		return append(left, right...), ok && also
	}
	t := q.Term
	if t == nil || len(q.FuncDefs) > 0 || t.Type != gojq.TermTypeIdentity && t.Type != gojq.TermTypeIndex {
		return nil, false
	}
	var steps []*gojq.Query
	if t.Type == gojq.TermTypeIndex {
		steps = append(steps, constantStep(t.Index))
	}
	for _, s := range t.SuffixList {
		if s.Index == nil {
			return nil, false
		}
		steps = append(steps, constantStep(s.Index))
	}
	for _, s := range steps {
		if s == nil {
			return nil, false
		}
	}
	return []*gojq.Query{list(steps...)}, true
}

// constantStep returns the key or the number of an index, nil if it is computed.
func constantStep(i *gojq.Index) *gojq.Query {
	switch {
	case i.Name != "":
		return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeString, Str: &gojq.String{Str: i.Name}}}
	case i.Str != nil && len(i.Str.Queries) == 0:
		return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeString, Str: i.Str}}
	case i.Start != nil && !i.IsSlice && computed(i) == nil:
		return i.Start
	}
	return nil
}
