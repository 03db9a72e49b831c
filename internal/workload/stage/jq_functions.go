package stage

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/itchyny/gojq"
)

// expressionMost is how long an expression of jq may be.
const expressionMost = 4 << 10

// free are the functions of jq, with their arity, that terminate and use memory only in proportion to their steps. They
// are unchanged.
var free = []string{
	"empty/0", "error/0", "error/1", "length/0", "utf8bytelength/0", "has/1", "type/0", "not/0", "select/1",
	"first/0", "first/1", "last/0", "last/1", "limit/2", "skip/2", "nth/1", "nth/2", "range/1", "range/2", "range/3",
	"isempty/1", "any/2", "all/2", "values/0", "nulls/0", "booleans/0", "numbers/0",
	"strings/0", "arrays/0", "objects/0", "iterables/0", "scalars/0", "finites/0", "normals/0", "floor/0", "ceil/0",
	"round/0", "trunc/0", "sqrt/0", "fabs/0", "abs/0", "infinite/0", "nan/0", "isinfinite/0", "isfinite/0", "isnan/0",
	"isnormal/0", "now/0", "startswith/1", "endswith/1", "ltrimstr/1", "rtrimstr/1", "trimstr/1", "trim/0", "ltrim/0",
	"rtrim/0", "recurse/0", "recurse/1", "recurse/2", "while/2", "until/2", "repeat/1", "mktime/0", "gmtime/0",
	"fromdate/0", "fromdateiso8601/0", "todate/0", "todateiso8601/0",
}

// bounded are the functions and operators of jq that spend a budget, by name and number of arguments. Each is defined
// by an expression about its input and $a, $b.
var bounded = compileBounded(map[string]string{
	"_plus/2": "$a + $b", "_minus/2": "$a - $b", "_times/2": "$a * $b", "_over/2": "$a / $b", "_rest/2": "$a % $b",
	"_eq/2": "$a == $b", "_ne/2": "$a != $b", "_lt/2": "$a < $b", "_le/2": "$a <= $b", "_gt/2": "$a > $b",
	"_ge/2": "$a >= $b", "_at/1": ".[$a]", "_neg/0": "-(.)", "_each/0": ".",
	"tostring/0": "tostring", "tojson/0": "tojson", "fromjson/0": "fromjson", "tonumber/0": "tonumber",
	"toboolean/0": "toboolean", "split/1": "split($a)", "join/1": "join($a)", "add/0": "add", "keys/0": "keys",
	"ascii_downcase/0": "ascii_downcase", "ascii_upcase/0": "ascii_upcase", "explode/0": "explode",
	"implode/0": "implode", "reverse/0": "reverse", "sort/0": "sort", "unique/0": "unique", "min/0": "min",
	"max/0": "max", "flatten/0": "flatten", "flatten/1": "flatten($a)", "contains/1": "contains($a)",
	"inside/1": "inside($a)", "indices/1": "indices($a)", "index/1": "index($a)", "rindex/1": "rindex($a)",
	"getpath/1": "getpath($a)", "to_entries/0": "to_entries", "from_entries/0": "from_entries", "test/1": "test($a)",
	"test/2": "test($a; $b)", "_text/0": "@text", "_json/0": "@json", "_base64/0": "@base64",
	"_base64d/0": "@base64d", "_html/0": "@html", "_uri/0": "@uri", "_csv/0": "@csv", "_tsv/0": "@tsv",
	"_sh/0": "@sh", "_matches/2": "[match($a; $b)]", "_captures/0": "_captures", "split/2": "split($a; $b)",
	"_sort_by/1": "_sort_by($a)", "_group_by/1": "_group_by($a)", "_unique_by/1": "_unique_by($a)",
	"_min_by/1": "_min_by($a)", "_max_by/1": "_max_by($a)", "_delpaths/1": "delpaths($a)",
})

// operators are the bounded names of jq's operators.
var operators = map[gojq.Operator]string{
	gojq.OpAdd: "_plus/2", gojq.OpSub: "_minus/2", gojq.OpMul: "_times/2", gojq.OpDiv: "_over/2",
	gojq.OpMod: "_rest/2", gojq.OpEq: "_eq/2", gojq.OpNe: "_ne/2", gojq.OpLt: "_lt/2", gojq.OpLe: "_le/2",
	gojq.OpGt: "_gt/2", gojq.OpGe: "_ge/2",
}

func compileBounded(of map[string]string) map[string]*boundedFunction {
	out := map[string]*boundedFunction{}
	for name, text := range of {
		word, _, _ := strings.Cut(name, "/")
		arity := int(name[len(name)-1] - '0')
		parsed, err := gojq.Parse(text)
		if err != nil {
			panic(name + ": " + err.Error()) // a test excludes it
		}
		code, err := gojq.Compile(parsed, gojq.WithVariables([]string{"$a", "$b"}[:arity]))
		if err != nil {
			panic(name + ": " + err.Error())
		}
		out[name] = &boundedFunction{arity: arity, code: code, name: strings.TrimPrefix(word, "_")}
	}
	estimateOperators(out)
	estimateFunctions(out)
	return out
}

// each is the estimate of functions that compare each with each.
func each(_ any, _ []any, size int) int {
	n := float64(size) / word
	return sum(size, product(n, n))
}

func estimateOperators(out map[string]*boundedFunction) {
	out["_times/2"].estimate = func(_ any, args []any, size int) int {
		return sum(max(repeated(args[0], args[1]), repeated(args[1], args[0])), digits(size, args))
	}
	for _, name := range []string{"_plus/2", "_over/2", "_rest/2"} {
		out[name].estimate = func(_ any, args []any, size int) int {
			return sum(32*splits(args), digits(size, args))
		}
	}
	out["_minus/2"].estimate = func(v any, args []any, size int) int {
		if lists(args) {
			return each(v, args, size)
		}
		return digits(size, args)
	}
	out["_at/1"].estimate = func(v any, args []any, size int) int {
		if _, ok := args[0].([]any); ok {
			return each(v, args, size)
		}
		return 0
	}
}

func estimateFunctions(out map[string]*boundedFunction) {
	times := func(n float64) func(any, []any, int) int {
		return func(_ any, _ []any, size int) int { return product(n, float64(size)) }
	}
	out["add/0"].estimate = func(v any, args []any, size int) int {
		if list, ok := v.([]any); ok && len(list) > 0 {
			if _, ok := list[0].(string); ok {
				return 2 * size
			}
		}
		return each(v, args, size)
	}
	for _, name := range []string{"contains/1", "inside/1", "indices/1", "index/1", "rindex/1", "from_entries/0"} {
		out[name].estimate = each
	}
	out["join/1"].estimate = func(_ any, args []any, size int) int {
		separator, _ := args[0].(string)
		return sum(size, product(float64(len(separator)), float64(size)/word))
	}
	out["split/1"].estimate = func(v any, args []any, size int) int { return sum(size, 32*splits([]any{v, args[0]})) }
	out["tonumber/0"].estimate = func(v any, _ []any, size int) int {
		if text, ok := v.(string); ok && len(text) > digitsMost {
			return valueMost + 1
		}
		return size
	}
	for _, name := range []string{"test/1", "test/2"} {
		out[name].estimate = func(v any, args []any, size int) int {
			in, _ := v.(string)
			pattern, _ := args[0].(string)
			return matching(pattern, in, size)
		}
	}
	for _, name := range []string{"_matches/2", "split/2"} {
		out[name].estimate = func(v any, args []any, size int) int {
			in, _ := v.(string)
			pattern, _ := args[0].(string)
			flags, _ := args[1].(string)
			matches := 1.0
			if name == "split/2" || strings.Contains(flags, "g") {
				matches += float64(len(in))
			}
			captures := float64(1 + strings.Count(pattern, "("))
			// Each match copies the text before it, and each of its captures too.
			return sum(matching(pattern, in, size), product(matches*captures, 64+12*float64(len(in))))
		}
	}
	for _, name := range []string{"explode/0", "fromjson/0", "to_entries/0"} {
		out[name].estimate = times(16)
	}
	for _, name := range []string{
		"tojson/0", "tostring/0", "_text/0", "_json/0", "_html/0", "_uri/0", "_csv/0", "_tsv/0", "_sh/0",
	} {
		out[name].estimate = times(6)
	}
}

// digitsMost is how many digits a number may have.
const digitsMost = 1000

// digits returns the size of an operation on numbers, or too much if one has too many digits.
func digits(size int, args []any) int {
	for _, one := range args {
		if n, ok := one.(*big.Int); ok && n.BitLen() > 4*digitsMost {
			return valueMost + 1
		}
	}
	return size
}

// repeated returns the length of a repeated string, 0 if it is not a string.
func repeated(text, times any) int {
	s, ok := text.(string)
	if !ok {
		return 0
	}
	switch n := times.(type) {
	case int:
		return product(float64(len(s)), float64(n))
	case float64:
		return product(float64(len(s)), n+1)
	case *big.Int:
		return valueMost + 1
	}
	return 0
}

// splits returns the number of parts into which split cuts args[0] at args[1], 0 if one of them is not a string.
func splits(args []any) int {
	s, ok := args[0].(string)
	by, also := args[1].(string)
	if !ok || !also {
		return 0
	}
	return strings.Count(s, by) + 1
}

func lists(args []any) bool {
	_, a := args[0].([]any)
	_, b := args[1].([]any)
	return a && b
}

// boundName is the name of a bounded function in a compiled expression.
func boundName(name string) string {
	word, _, _ := strings.Cut(name, "/")
	return fmt.Sprintf("_bounded_%s%c", strings.TrimPrefix(word, "_"), name[len(name)-1])
}
