package stage

import (
	"fmt"
	"math"
	"reflect"
	"regexp/syntax"
	"strings"
	"text/template"
)

// refused are functions of sprig that Stages cannot use: they take long whatever their arguments, or have side effects
// or inputs outside the evaluation.
var refused = []string{
	"env", "expandenv", "getHostByName",
	"bcrypt", "htpasswd", "derivePassword", "genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert",
	"genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey", "buildCustomCert",
}

// estimate returns the approximate number of bytes that a function works with. size is the total size of its arguments.
type estimate func(args []reflect.Value, size int) int

// estimates are for functions with results much larger than their arguments, or that take disproportionately long. The
// other functions are charged for their arguments before the call, and for the result after it.
var estimates = map[string]estimate{
	"repeat": func(a []reflect.Value, _ int) int { return product(num(a[0]), length(a[1])) },
	"until":  func(a []reflect.Value, _ int) int { return count(0, num(a[0]), 1) },
	"untilStep": func(a []reflect.Value, _ int) int {
		return count(num(a[0]), num(a[1]), num(a[2]))
	},
	"seq":     seqOf,
	"indent":  indentOf,
	"nindent": indentOf,
	"replace": func(a []reflect.Value, size int) int {
		return sum(size, product(float64(strings.Count(str(a[2]), str(a[0]))), length(a[1])))
	},
	"wrap":     func(a []reflect.Value, size int) int { return product(3, float64(size)) },
	"wrapWith": func(a []reflect.Value, _ int) int { return product(1+length(a[1]), 1+length(a[2])) },
	"trimAll":  func(a []reflect.Value, size int) int { return sum(size, product(length(a[0]), length(a[1]))/64) },
	"trimall":  func(a []reflect.Value, size int) int { return sum(size, product(length(a[0]), length(a[1]))/64) },
	"join": func(a []reflect.Value, size int) int {
		return sum(size, product(length(a[0]), float64(size)/word))
	},
	"split":        func(a []reflect.Value, size int) int { return sum(size, product(128, parts(a))) },
	"splitList":    func(a []reflect.Value, size int) int { return sum(size, product(32, parts(a))) },
	"splitn":       func(a []reflect.Value, size int) int { return product(2, float64(size)) },
	"randAlpha":    numberOf,
	"randAlphaNum": numberOf,
	"randAscii":    numberOf,
	"randNumeric":  numberOf,
	"randBytes":    numberOf,
	"toPrettyJson": many, "mustToPrettyJson": many, "quote": many, "squote": many, "toJson": many, "mustToJson": many,
	"html": many, "js": many, "urlquery": many, "Quote": many, "YAML": yamlOf, "fromJson": many, "mustFromJson": many,
	"toRawJson": many, "mustToRawJson": many, "print": many, "println": many, "printf": printfOf,
	"uniq": square, "mustUniq": square, "without": square, "mustWithout": square, "has": square, "mustHas": square,
	"pluck": square, "omit": square, "pick": square, "merge": square, "mergeOverwrite": square, "mustMerge": square,
	"mustMergeOverwrite": square,
	"regexMatch":         regexOf, "mustRegexMatch": regexOf, "regexFind": regexOf, "mustRegexFind": regexOf,
	"regexFindAll": regexOf, "mustRegexFindAll": regexOf, "regexSplit": regexOf, "mustRegexSplit": regexOf,
	"regexReplaceAll": replaceOf, "mustRegexReplaceAll": replaceOf, "regexReplaceAllLiteral": replaceOf,
	"mustRegexReplaceAllLiteral": replaceOf,
}

// printing are the functions of text/template that return strings.
var printing = template.FuncMap{
	"print": fmt.Sprint, "printf": fmt.Sprintf, "println": fmt.Sprintln,
	"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
}

func num(v reflect.Value) float64 {
	for v.Kind() == reflect.Interface && !v.IsNil() {
		v = v.Elem()
	}
	if v.CanInt() {
		return float64(v.Int())
	}
	return 0
}

func str(v reflect.Value) string {
	for v.Kind() == reflect.Interface && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() == reflect.String {
		return v.String()
	}
	return ""
}

func length(v reflect.Value) float64 { return float64(len(str(v))) }

// product and sum stay within the type.
func product(a, b float64) int { return int(min(max(0, a*b), math.MaxInt32)) }

func sum(a, b int) int { return min(a+b, math.MaxInt32) }

// farthest is the largest number that a list may begin or end with: further out a loop of sprig runs over.
const farthest = 1 << 40

// count estimates the length of the list of numbers from one to another.
func count(from, to, step float64) int {
	if max(math.Abs(from), math.Abs(to), math.Abs(step)) > farthest {
		return math.MaxInt32
	}
	return product(math.Abs(to-from)/max(1, math.Abs(step)), 8)
}

func seqOf(a []reflect.Value, _ int) int {
	n := []float64{}
	for i := range a[0].Len() {
		n = append(n, num(a[0].Index(i)))
	}
	switch len(n) {
	case 1:
		return 4 * count(1, n[0], 1)
	case 2:
		return 4 * count(n[0], n[1], 1)
	case 3:
		return 4 * count(n[0], n[2], n[1])
	}
	return 0
}

func indentOf(a []reflect.Value, size int) int {
	return sum(2*size, product(num(a[0]), float64(strings.Count(str(a[1]), "\n")+1)))
}

func yamlOf(a []reflect.Value, size int) int {
	levels := 0.0
	if a[1].Len() > 0 {
		levels = num(a[1].Index(0))
	}
	return sum(8*size, product(2*levels, float64(size)/word+1))
}

func numberOf(a []reflect.Value, _ int) int { return product(num(a[0]), 4) }

func many(_ []reflect.Value, size int) int { return product(float64(size), 8) }

// square is for functions that compare all pairs.
func square(_ []reflect.Value, size int) int {
	n := float64(size) / word
	return sum(size, product(n, n))
}

func parts(a []reflect.Value) float64 { return float64(strings.Count(str(a[1]), str(a[0]))) + 1 }

// printfOf counts verbs, each of which may write the largest argument, and the numbers in the format as widths.
func printfOf(a []reflect.Value, size int) int {
	format := str(a[0])
	wide, run := 0.0, 0.0
	for _, c := range format {
		switch {
		case c >= '0' && c <= '9':
			run = min(10*run+float64(c-'0'), math.MaxInt32)
			continue
		case c == '*':
			run = valueMost / 4
		}
		wide, run = wide+run, 0
	}
	return sum(product(1, wide), product(float64(strings.Count(format, "%"))+1, 4*float64(size)))
}

// regexMost is how long a regular expression may be.
const regexMost = 1 << 10

// regexOf counts one byte for 64 steps of the matching machine.
func regexOf(a []reflect.Value, size int) int { return matching(str(a[0]), str(a[1]), size) }

func matching(pattern, in string, size int) int {
	if len(pattern) > regexMost {
		return math.MaxInt32
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return size // the function itself returns the error
	}
	machine, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return size
	}
	n := float64(len(machine.Inst))
	return sum(16*size, product(n, 40+float64(len(in))/64))
}

func replaceOf(a []reflect.Value, size int) int {
	return sum(regexOf(a, size), product(2+2*length(a[1]), 1+length(a[2])))
}

var errorType = reflect.TypeFor[error]()

// guard wraps f with charges to the budget.
func (b *budget) guard(name string, f any) any {
	of := reflect.ValueOf(f)
	t := of.Type()
	in := make([]reflect.Type, t.NumIn())
	for i := range in {
		in[i] = t.In(i)
	}
	call := of.Call
	if t.IsVariadic() {
		call = of.CallSlice
	}
	out := []reflect.Type{t.Out(0), errorType}
	fail := func(err error) []reflect.Value {
		return []reflect.Value{reflect.Zero(out[0]), reflect.ValueOf(&err).Elem()}
	}
	return reflect.MakeFunc(reflect.FuncOf(in, out, t.IsVariadic()), func(args []reflect.Value) []reflect.Value {
		if err := b.before(name, args); err != nil {
			return fail(err)
		}
		results := call(args)
		if len(results) == 1 {
			results = append(results, reflect.Zero(errorType))
		}
		if !results[1].IsNil() {
			return results
		}
		if err := b.charge(name, results[:1], nil); err != nil {
			return fail(err)
		}
		return results
	}).Interface()
}

func (b *budget) before(name string, args []reflect.Value) error {
	return b.charge(name, args, estimates[name])
}

// charge spends the size of values, or their estimate.
func (b *budget) charge(name string, values []reflect.Value, e estimate) error {
	left := valueMost
	for _, v := range values {
		err := measure(v, depthMost, &left)
		if err == errDeep {
			b.spent = fmt.Errorf("%s: %w", name, err)
			return b.spent
		}
		if err != nil {
			left = -1
			break
		}
	}
	size := valueMost - left
	if e != nil && left >= 0 {
		size = max(size, e(values, size))
	}
	return b.spend(name, size)
}
