package stage

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// variablesMost is the largest number of variables in an expression: each call of a function may keep all of them.
const variablesMost = 64

// binder puts bounded functions and operators into an expression.
type binder struct {
	variables int
	own       []string // the functions that the expression defines, and their parameters, as name/arity

	defs    []*gojq.FuncDef // of derived functions, each after those that it calls
	has     map[string]bool // the derived functions with a definition
	derives bool            // it binds the definition of a derived function
}

// bind makes an expression call bounded functions, and rejects one with unbounded constructs: updates, and functions
// that are neither free nor bounded.
func bind(q *gojq.Query) error {
	b := &binder{has: map[string]bool{}}
	if err := b.query(q); err != nil {
		return err
	}
	q.FuncDefs = append(b.defs, q.FuncDefs...)
	return nil
}

func (b *binder) query(q *gojq.Query) error {
	switch {
	case q == nil:
		return nil
	case q.Meta != nil || len(q.Imports) > 0:
		return errors.New("a Stage has no modules")
	}
	defer func(n int) { b.own = b.own[:n] }(len(b.own))
	for _, d := range q.FuncDefs {
		if err := b.define(d); err != nil {
			return err
		}
	}
	for _, p := range q.Patterns {
		if err := b.pattern(p); err != nil {
			return err
		}
	}
	if q.Term != nil {
		return b.term(q.Term)
	}
	if err := b.all(q.Left, q.Right); err != nil {
		return err
	}
	if name := operators[q.Op]; name != "" {
		*q = *called(name, q.Left, q.Right)
		return nil
	}
	switch q.Op {
	case gojq.OpPipe, gojq.OpComma, gojq.OpOr, gojq.OpAnd, gojq.OpAlt:
		return nil
	}
	return fmt.Errorf("a Stage cannot use the operator %s", q.Op)
}

// define binds the body of a function, which may call itself.
func (b *binder) define(d *gojq.FuncDef) error {
	b.own = append(b.own, fmt.Sprintf("%s/%d", d.Name, len(d.Args)))
	defer func(n int) { b.own = b.own[:n] }(len(b.own))
	for _, name := range d.Args {
		if strings.HasPrefix(name, "$") {
			if err := b.variable(); err != nil {
				return err
			}
		}
		b.own = append(b.own, strings.TrimPrefix(name, "$")+"/0")
	}
	return b.query(d.Body)
}

func (b *binder) variable() error {
	if b.variables++; b.variables > variablesMost {
		return fmt.Errorf("it has more than %d variables", variablesMost)
	}
	return nil
}

func (b *binder) all(queries ...*gojq.Query) error {
	for _, q := range queries {
		if err := b.query(q); err != nil {
			return err
		}
	}
	return nil
}

// called returns the call of a bounded function.
func called(name string, args ...*gojq.Query) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{
		Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: boundName(name), Args: args},
	}}
}

// inner returns a query as a term.
func inner(q *gojq.Query) *gojq.Term { return &gojq.Term{Type: gojq.TermTypeQuery, Query: q} }

func (b *binder) term(t *gojq.Term) error {
	suffixes := t.SuffixList
	t.SuffixList = nil
	if err := b.head(t); err != nil {
		return err
	}
	for _, s := range suffixes {
		at := computed(s.Index)
		if at == nil {
			if s.Iter {
				of := *t
				*t = *inner(piped(&gojq.Query{Term: &of}, called("_each/0")))
			}
			if err := b.index(s.Index); err != nil {
				return err
			}
			t.SuffixList = append(t.SuffixList, s)
			continue
		}
		// f[g], with the object as the input of g: . as $_object | (f) as $_list | g as $_at | …
		if err := b.query(at); err != nil {
			return err
		}
		of := *t
		*t = *inner(&gojq.Query{
			Left: at, Patterns: []*gojq.Pattern{{Name: "$_at"}}, Op: gojq.OpPipe, Right: &gojq.Query{
				Left: &gojq.Query{Term: &of}, Op: gojq.OpPipe, Right: called("_at/1", variable("$_at")),
			},
		})
	}
	return nil
}

func variable(name string) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name}}}
}

// computed returns the expression of an index, nil for none or a constant string or number.
func computed(i *gojq.Index) *gojq.Query {
	if i == nil || i.IsSlice || i.Start == nil {
		return nil
	}
	if t := i.Start.Term; t != nil && len(t.SuffixList) == 0 &&
		(t.Type == gojq.TermTypeNumber || t.Type == gojq.TermTypeString && len(t.Str.Queries) == 0) {
		return nil
	}
	return i.Start
}

func (b *binder) index(i *gojq.Index) error {
	if i == nil {
		return nil
	}
	if i.Str != nil && len(i.Str.Queries) > 0 {
		return errors.New(`a Stage cannot use ."\(…)": use .["…" + …]`)
	}
	return b.all(i.Start, i.End)
}

// head binds a term without its suffixes.
func (b *binder) head(t *gojq.Term) error {
	switch t.Type {
	case gojq.TermTypeIndex:
		if at := computed(t.Index); at != nil {
			if err := b.query(at); err != nil {
				return err
			}
			*t = *called("_at/1", at).Term
			return nil
		}
		return b.index(t.Index)
	case gojq.TermTypeFunc:
		return b.call(t)
	case gojq.TermTypeObject:
		return b.object(t.Object)
	case gojq.TermTypeArray:
		return b.query(t.Array.Query)
	case gojq.TermTypeUnary:
		return b.unary(t)
	case gojq.TermTypeFormat:
		return b.format(t)
	case gojq.TermTypeString:
		return b.text(t)
	case gojq.TermTypeIf:
		return b.condition(t.If)
	case gojq.TermTypeTry:
		return b.all(t.Try.Body, t.Try.Catch)
	case gojq.TermTypeReduce:
		r := t.Reduce
		return errors.Join(b.pattern(r.Pattern), b.all(r.Query, r.Start, r.Update))
	case gojq.TermTypeForeach:
		f := t.Foreach
		return errors.Join(b.pattern(f.Pattern), b.all(f.Query, f.Start, f.Update, f.Extract))
	case gojq.TermTypeLabel:
		return b.query(t.Label.Body)
	case gojq.TermTypeQuery:
		return b.query(t.Query)
	case gojq.TermTypeIdentity, gojq.TermTypeRecurse, gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse,
		gojq.TermTypeNumber, gojq.TermTypeBreak:
		return nil
	}
	return fmt.Errorf("a Stage cannot use %s", t)
}

func (b *binder) unary(t *gojq.Term) error {
	if err := b.term(t.Unary.Term); err != nil || t.Unary.Op != gojq.OpSub {
		return err
	}
	*t = *inner(&gojq.Query{Left: &gojq.Query{Term: t.Unary.Term}, Op: gojq.OpPipe, Right: called("_neg/0")})
	return nil
}

// call binds the call of a function, which is defined in the expression, free or bounded.
func (b *binder) call(t *gojq.Term) error {
	f := t.Func
	if strings.HasPrefix(f.Name, "$") {
		return nil
	}
	name := fmt.Sprintf("%s/%d", f.Name, len(f.Args))
	if slices.Contains(b.own, name) {
		return b.all(f.Args...)
	}
	switch name {
	case "with_entries/1":
		*t = *inner(piped(function("to_entries"), function("map", f.Args[0]), function("from_entries")))
		return b.head(t)
	case "map/1":
		t.Type, t.Func, t.Array = gojq.TermTypeArray, nil, &gojq.Array{Query: piped(items(), f.Args[0])}
		return b.head(t)
	case "del/1":
		return b.deletion(t)
	case "any/0", "all/0":
		f.Args = []*gojq.Query{items(), {Term: &gojq.Term{Type: gojq.TermTypeIdentity}}}
	case "any/1", "all/1":
		f.Args = []*gojq.Query{items(), f.Args[0]}
	}
	if err := b.all(f.Args...); err != nil {
		return err
	}
	switch {
	case bounded[name] != nil && (b.derives || !strings.HasPrefix(name, "_")):
		f.Name = boundName(name)
		return nil
	case derived[name] != "":
		f.Name = derivedName(name)
		return b.derive(name)
	case slices.Contains(free, name):
		return nil
	}
	return fmt.Errorf("a Stage cannot use the function %s: see the list in docs/workloads.md", name)
}

// items returns the expression .[].
func items() *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIdentity, SuffixList: []*gojq.Suffix{{Iter: true}}}}
}

func function(name string, args ...*gojq.Query) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name, Args: args}}}
}

func piped(queries ...*gojq.Query) *gojq.Query {
	out := queries[0]
	for _, q := range queries[1:] {
		out = &gojq.Query{Left: out, Op: gojq.OpPipe, Right: q}
	}
	return out
}

func (b *binder) object(o *gojq.Object) error {
	for _, kv := range o.KeyVals {
		if kv.KeyString != nil && len(kv.KeyString.Queries) > 0 {
			key := &gojq.Term{Type: gojq.TermTypeString, Str: kv.KeyString}
			kv.KeyString, kv.KeyQuery = nil, &gojq.Query{Term: inner(&gojq.Query{Term: key})}
		}
		if err := b.all(kv.KeyQuery, kv.Val); err != nil {
			return err
		}
	}
	return nil
}

// format binds a format such as @base64; it rejects one of an interpolated string.
func (b *binder) format(t *gojq.Term) error {
	name := "_" + strings.TrimPrefix(t.Format, "@") + "/0"
	if t.Str != nil || bounded[name] == nil {
		return fmt.Errorf("a Stage cannot use %s", t)
	}
	*t = *called(name).Term
	return nil
}

// text turns string interpolations into sums.
func (b *binder) text(t *gojq.Term) error {
	if len(t.Str.Queries) == 0 {
		return nil
	}
	var out *gojq.Query
	for _, q := range t.Str.Queries {
		literal := q.Term != nil && q.Term.Type == gojq.TermTypeString && len(q.Term.Str.Queries) == 0 &&
			len(q.Term.SuffixList) == 0
		if !literal {
			if err := b.query(q); err != nil {
				return err
			}
			q = &gojq.Query{Left: q, Op: gojq.OpPipe, Right: called("tostring/0")}
		}
		if out == nil {
			out = q
		} else {
			out = called("_plus/2", out, q)
		}
	}
	*t = *inner(out)
	return nil
}

func (b *binder) condition(i *gojq.If) error {
	err := b.all(i.Cond, i.Then, i.Else)
	for _, e := range i.Elif {
		err = errors.Join(err, b.all(e.Cond, e.Then))
	}
	return err
}

func (b *binder) pattern(p *gojq.Pattern) error {
	if p == nil {
		return nil
	}
	if p.Name != "" {
		if err := b.variable(); err != nil {
			return err
		}
	}
	for _, one := range p.Array {
		if err := b.pattern(one); err != nil {
			return err
		}
	}
	for _, one := range p.Object {
		if err := b.variable(); err != nil {
			return err
		}
		if one.KeyString != nil && len(one.KeyString.Queries) > 0 {
			return errors.New(`a Stage cannot use "\(…)" as a key of a pattern`)
		}
		if err := errors.Join(b.query(one.KeyQuery), b.pattern(one.Val)); err != nil {
			return err
		}
	}
	return nil
}
