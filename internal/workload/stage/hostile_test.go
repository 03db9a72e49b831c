package stage

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"github.com/itchyny/gojq"
)

// hostileQueries are expressions that would take all memory, or never end.
var hostileQueries = []string{
	`reduce range(34) as $i (1; [., .]) | tojson`, `reduce range(34) as $i ("x"; . + .)`,
	`reduce range(34) as $i ("x"; "\(.)\(.)")`, `reduce range(34) as $i ([1]; . + .)`,
	`reduce range(34) as $i ({}; {a: ., b: .}) | tojson`, `"x" * 1000000000`, `1000000000 * "x"`,
	`[range(1000000000)]`,
	`reduce range(1000000000) as $i ([]; . + [$i])`, `reduce range(40) as $i (10; . * .)`,
	`reduce range(30) as $i (1; [., .]) | . == .`, `reduce range(30) as $i (1; [., .]) | flatten`,
	`reduce range(30) as $i (1; [., .]) | [..]`, `reduce range(30) as $i (1; [., .]) | contains([1])`,
	`last(range(1000000000))`, `first(range(1e12) | select(false))`,
	`try ("x" * 1000000000) catch ("x" * 1000000000)`,
	`[range(60000)] as $a | [range(60000) | $a + [.]] | length`, `[limit(1e9; range(1e9))] | length`,
	`("x" * 1000000) as $s | [range(1000000) | $s | ascii_upcase]`,
	`("x" * 1000000) as $s | [range(100000) | $s | explode]`,
	`("x," * 1000000) | split(",") | join("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")`,
	`[range(50000)] as $a | [$a[] | $a[] | $a[] | $a[]]`, `[range(20000)] as $a | $a - $a`,
	`("a" * 100000) | test("(a{1000}){1000}")`, `("a" * 1000000) | test("(((a?){30}){30})$")`,
	`("9" * 1000000) | tonumber`, `("[" * 100000) | fromjson`, `[range(60000) | 0] as $a | [range(60000) | $a[[0]]]`,
	`reduce range(100000) as $i ("x"; @base64)`, `reduce range(100000) as $i ("\""; tojson)`, `error("x" * 1e9)`,
	`foreach range(1e9) as $i (""; . + "xxxxxxxxxxxxxxxx"; .)`,
	`label $l | range(1e9) | if . > 1e8 then break $l else . end`,
	`.[1000000000]`, `[.[1000000000]?]`, `nth(1e9; range(1e10))`, `any(range(1e10); . < 0)`,
	`isempty(range(1e9) | empty)`,
	`def f: f; f`, `def f: f, f; f`, `def f: [f]; f`, `def f: ., f; [f]`, `repeat(1)`, `until(false; .)`,
	`while(true; .)`,
	`recurse(.)`, `[recurse(.; true)]`, `[range(50000)] as $a | def f: $a[] | f; f`,
	`[range(50000)] as $a | [repeat($a[])]`,
	`[range(50000)] as $a | [recurse($a[])]`, `[range(50000)] as $a | until(false; $a[])`,
	`def f(g): [g | f(g), f(g)]; f(.)`,
	`def tojson: 1; [range(1000000)]`, `(def tojson: 1; 2) | reduce range(34) as $i (1; [., .]) | tojson`,
	`("a" * 100000) | gsub(""; "x" * 100)`, `("a" * 400) | gsub("a"; "x" * 10000)`, `("a" * 1000000) | [match("a"; "g")]`,
	`("a" * 300) | [match("(((((((((a)))))))))"; "g")]`, `("a" * 400) | gsub("a"; range(1000000) | tostring)`,
	`("a" * 100000) | [scan("a")]`, `("a" * 100000) | [splits("a")]`, `("a" * 100000) | sub("(a{1000}){1000}"; "b")`,
	`reduce range(34) as $i (1; [., .]) | walk(.)`, `reduce range(34) as $i (1; [., .]) | [paths]`,
	`reduce range(34) as $i (1; [., .]) | group_by(.)`, `[range(60000)] | sort_by([range(1000)])`,
	`[range(60000)] | walk(., .)`, `[range(100) | [range(100)]] | walk(.[]?)`,
	`reduce range(199) as $i (1; [.]) | [paths]`,
	`reduce range(100000) as $i (1; [.]) | walk(.)`, `[range(60000)] | group_by(1e9 | [range(.)])`,
	`del(.spec.list[1000000000])`, `del(.spec.list[-1000000000])`, `null | del(.[1000000000])`,
	`[range(300)] | reduce range(300) as $i (.; map([.]))`,
}

// refusedQueries are expressions that a Stage cannot have.
var refusedQueries = []string{
	`.[1000000000] = 1`, `setpath([1000000000]; 1)`, `.a |= 1`, `.a += 1`, `input`, `inputs`, `env`, `$ENV | env`,
	`del(.a[])`, `del(..)`, `del(.["a" + "b"])`, `del(.a; .b)`, `_matches("a"; "g")`, `_sort_by(.)`, `_delpaths([])`,
	`import "a" as a; 1`, `halt`, `debug`, `ltrimstr`, `getpath`,
	`combinations`, `path(..)`, `input_filename`, `delpaths([["a"]])`, `gsub("a"; "b"; "g"; "x")`,
	`"\(1)" as {"\(2)": $x} | 1`,
	"(" + strings.Repeat("(", 5000), strings.Repeat(". as $a | ", 65) + ".", `@base32d`, `tojson | @text "\(1)"`,
	`builtins`,
}

// hostileTemplates are templates that would take all memory, or never end.
var hostileTemplates = []string{
	`{{repeat 2000000000 "x"}}`, `{{until 300000000 | len}}`, `{{untilStep 0 2000000000 1}}`,
	`{{untilStep 0 -2000000000 -1}}`,
	`{{untilStep 0 9223372036854775807 4611686018427387904}}`, `{{seq 1 300000000}}`, `{{seq 0 3 300000000}}`,
	`{{$x := "x"}}{{range until 40}}{{$x = cat $x $x}}{{end}}{{len $x}}`,
	`{{$x := list 1}}{{range until 40}}{{$x = concat $x $x}}{{end}}`,
	`{{$x := list 1}}{{range until 40}}{{$x = list $x $x}}{{end}}{{$x}}`,
	`{{$x := dict}}{{$_ := set $x "a" $x}}{{$x}}`,
	`{{$x := dict "a" dict}}{{$_ := set (index $x "a") "b" $x}}{{toJson $x}}`,
	`{{$x := list}}{{range until 100000}}{{$x = append $x .}}{{end}}`, `{{printf "%999999999d" 1}}`,
	`{{range until 1000}}{{printf "%999999d%999999d%999999d" 1 1 1 | len}}{{end}}`, `{{printf "%*d" 999999999 1}}`,
	`{{define "a"}}{{template "a"}}{{end}}{{template "a"}}`,
	`{{define "a"}}{{template "a"}}{{template "a"}}{{end}}{{template "a"}}`,
	`{{range $i := 9000000000}}{{end}}`, `{{range 9000000000}}{{range 9000000000}}{{end}}{{end}}`,
	`{{range until 100000}}{{range until 100000}}{{end}}{{end}}`, `{{indent 2000000000 "x"}}`,
	`{{nindent 1000000 "a\nb\nc\nd\ne"}}`,
	`{{randAlpha 2000000000}}`, `{{randBytes 2000000000}}`, `{{YAML (list 1 2 3) 1000000000}}`,
	`{{replace "" (repeat 100000 "y") (repeat 100000 "x")}}`, `{{join (repeat 1000000 "x") (until 100000)}}`,
	`{{regexReplaceAll "" (repeat 100000 "x") (repeat 100000 "y")}}`,
	`{{regexMatch "(((a?){30}){30})$" (repeat 1000000 "a")}}`,
	`{{regexReplaceAll "(.*)" (repeat 1000000 "y") (repeat 1000 "$1")}}`, `{{uniq (until 100000)}}`,
	`{{wrapWith 1 (repeat 100000 "x") (repeat 100000 "y")}}`, `{{trimAll (repeat 1000000 "ä") (repeat 1000000 "ä")}}`,
	`{{$x := "x"}}{{range until 100}}{{$x = toJson $x}}{{end}}`,
	`{{$x := "x"}}{{range until 1000}}{{$x = printf "%q%q" $x $x}}{{end}}`,
	`{{$x := list}}{{range until 1000}}{{$x = list $x}}{{end}}{{toPrettyJson $x}}`,
	`{{repeat 1000000 "x" | splitList ""}}`,
	`{{range until 1000000}}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{{end}}`,
	`{{$x := "[" | repeat 1000000}}{{fromJson $x}}`,
	`{{$x := "x"}}{{range until 40}}{{$x = html $x $x}}{{end}}`,
	`{{$x := "x"}}{{range until 40}}{{$x = print $x $x}}{{end}}`,
	`{{repeat 1000000 "[a,"}}`, `{{repeat 1000000 "- "}}`, `{{chunk 1 (until 400000)}}`,
	`{{shuffle (repeat 4000000 "x")}}`,
	`{{range until 100000}}{{range (repeat 1000 "x" | splitList "")}}{{end}}{{end}}`,
}

// hostileCEL are expressions of CEL that would take all memory.
var hostileCEL = []string{
	`"%.999999999f".format([1.0])`, `"x".reverse()`, `strings.quote("x")`,
	`"xxxxxxxxxx".replace("", "yyyyyyyyyy")` + strings.Repeat(`.replace("y", "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyy")`, 9),
	`"xxxxxxxxxx".replace("", "yyyyyyyyyy")` + strings.Repeat(`.replace("", "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyy")`, 9),
	`[0,1,2,3,4,5,6,7,8,9].map(a, [0,1,2,3,4,5,6,7,8,9].map(b, [0,1,2,3,4,5,6,7,8,9].map(c, [0,1,2,3,4,5,6,7,8,9].map(d,` +
		`[0,1,2,3,4,5,6,7,8,9].map(e, [0,1,2,3,4,5,6,7,8,9].map(f, [0,1,2,3,4,5,6,7,8,9].map(g, "x"))))))).size() > 0`,
	strings.Repeat("x", textMost+1),
}

// refusedTemplates are templates that a Stage cannot have.
var refusedTemplates = []string{
	`{{env "HOME"}}`, `{{expandenv "$HOME"}}`, `{{getHostByName "localhost"}}`, `{{genCA "a" 1}}`, `{{bcrypt "x"}}`,
	`{{genPrivateKey "rsa"}}`, `{{derivePassword 1 "long" "a" "b" "c"}}`, strings.Repeat("x", textMost+1),
}

const hostileObject = `{"metadata":{"name":"a","labels":{"a":"b"}},"spec":{"list":[1,2,3],"text":"x"}}`

func evaluate(text string) error {
	q, err := compileJQ(text)
	if err != nil {
		return err
	}
	_, err = q.values(context.Background(), objectOf(hostileObject))
	return err
}

func write(text string) error {
	parsed, err := parseTemplate(text)
	if err != nil {
		return err
	}
	_, err = render(parsed, objectOf(hostileObject), nil)
	return err
}

// arguments are the arguments of each function in the enumeration.
var arguments = []string{`"x"`, `2000000000`, `(until 1000)`, `(repeat 100000 "x")`, `""`, `-1`, `(dict "a" 1)`}

// TestHostile evaluates expressions that must end with an error or a value, in a process that may hold 1 GB. It calls
// each function of templates and of jq with huge arguments, so that a new one is tried too.
func TestHostile(t *testing.T) {
	if os.Getenv("STAGE_HOSTILE") == "" {
		command := exec.Command(os.Args[0], "-test.run=^TestHostile$", "-test.timeout=300s")
		command.Env = append(os.Environ(), "STAGE_HOSTILE=1", "GOMEMLIMIT=400MiB")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v:\n%s", err, out[:min(len(out), 10_000)])
		}
		return
	}
	limitMemory(t)
	for i, text := range hostileQueries {
		t.Run(fmt.Sprint("query ", i), func(t *testing.T) {
			if err := evaluate(text); err != nil {
				t.Log(err)
			}
		})
	}
	for i, text := range hostileCEL {
		t.Run(fmt.Sprint("cel ", i), func(t *testing.T) {
			p, err := compileCEL(text)
			if err == nil {
				_, err = p.eval(t.Context(), objectOf(hostileObject))
			}
			if err == nil {
				t.Errorf("%s: no error", text)
			}
		})
	}
	for i, text := range hostileTemplates {
		t.Run(fmt.Sprint("template ", i), func(t *testing.T) {
			if err := write(text); err == nil {
				t.Errorf("%s: no error", text)
			}
		})
	}
	for name, f := range builtin() {
		t.Run("function "+name, func(*testing.T) {
			of := reflect.TypeOf(f)
			n := of.NumIn()
			if of.IsVariadic() {
				n = max(n, 3)
			}
			for at := range arguments { // each argument in turn, and all of them the same
				same, turned := "", ""
				for i := range n {
					same += " " + arguments[at]
					turned += " " + arguments[(at+i)%len(arguments)]
				}
				_ = write("{{" + name + same + " | len}}")
				_ = write("{{" + name + turned + " | len}}")
			}
		})
	}
	for _, name := range functionNames(t) {
		t.Run("jq "+name, func(*testing.T) {
			for _, in := range []string{`"x"`, `1e9`, `[range(10000)]`, `("x" * 100000)`, `{a: [1]}`} {
				word, _, _ := strings.Cut(name, "/")
				args := strings.Repeat("; "+in, int(name[len(name)-1]-'0'))
				if args != "" {
					args = "(" + args[2:] + ")"
				}
				_ = evaluate(in + " | " + word + args)
				_ = evaluate(in + " as $in | [range(2000) | $in | " + word + strings.ReplaceAll(args, in, "$in") + "]")
			}
		})
	}
}

// functionNames returns the names of all functions of jq.
func functionNames(t *testing.T) (out []string) {
	t.Helper()
	parsed, err := gojq.Parse("builtins")
	if err != nil {
		t.Fatal(err)
	}
	v, _ := parsed.Run(nil).Next()
	for _, name := range v.([]any) {
		out = append(out, name.(string))
	}
	return out
}

// TestRefused checks that a Stage with an unbounded construct is rejected.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, text := range refusedQueries {
		if _, err := compileJQ(text); err == nil {
			t.Errorf("%.100s: no error", text)
		}
	}
	for _, text := range refusedTemplates {
		if _, err := parseTemplate(text); err == nil {
			t.Errorf("%.100s: no error", text)
		}
	}
}

// TestListed checks that the lists of functions name functions of jq and of templates, and none twice.
func TestListed(t *testing.T) {
	t.Parallel()
	names := functionNames(t)
	for name := range bounded {
		if !strings.HasPrefix(name, "_") && !slices.Contains(names, name) {
			t.Errorf("%s is none of jq's", name)
		}
	}
	for _, name := range free {
		if !slices.Contains(names, name) && name != "empty/0" {
			t.Errorf("%s is none of jq's", name)
		}
		if bounded[name] != nil {
			t.Errorf("%s is both free and bounded", name)
		}
	}
	all := sprig.TxtFuncMap()
	for _, name := range slices.Collect(maps.Keys(estimates)) {
		if builtin()[name] == nil {
			t.Errorf("%s is no function", name)
		}
	}
	for _, name := range refused {
		if all[name] == nil {
			t.Errorf("%s is no function", name)
		}
	}
}

// TestBoundedJQ compares bounded expressions with jq's own.
func TestBoundedJQ(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`.metadata.labels["a"]`, `.metadata.labels.a + "c"`, `"\(.metadata.name)-\(.spec.list[1] + 1)"`,
		`.spec.list[]`,
		`.spec.list | map(. * 2) | add`, `.metadata.labels | to_entries | map("\(.key)=\(.value)") | join(",")`,
		`.metadata.labels | with_entries(.value += "")?`, `.metadata.labels | with_entries(.key |= .)?`,
		`.spec.list[.spec.list[0]]`, `.spec.list | .[length - 1]`, `.spec.list[-1:]`, `.spec["list"][0]`,
		`-(.spec.list[2])`,
		`.spec.list[] | select(. >= 2)`, `if .spec.list | any(. == 3) then "y" else "n" end`,
		`.spec.text | test("^x$")`,
		`[.spec.list[] as $x | {"\(.metadata.name)": $x, b: ($x % 2)}]`, `.spec.missing // "d"`,
		`.spec.text | @base64`,
		`.spec.list as [$a, $b] | $a - $b`, `reduce .spec.list[] as $i (0; . + $i)`,
		`[foreach .spec.list[] as $i (0; . + $i)]`,
		`.spec.list | sort | reverse | first`, `[.spec.list[] | tostring] | join("-")`, `.spec.text * 3`, `.a.b.c?`,
		`try error("x") catch .`, `[.. | numbers]`, `.spec | keys`, `"a,b" / ","`, `[1, 2] - [1]`,
		`{a: {b: 1}} * {a: {c: 2}}`,
		`"1" | tonumber`, `.spec.list | contains([1])`, `.spec.list | index(2)`, `getpath(["spec", "text"])`,
		`[limit(2; .spec.list[])]`,
		`def f($x; g): $x + g; f(1; .spec.list[0])`, `def f: if . > 3 then . else . + 1 | f end; 1 | f`,
		`[1 | while(. < 9; . * 2)]`,
		`[.spec.list[] | until(. > 5; . + 1)]`, `[2 | recurse(if . < 9 then . * . else empty end)]`,
		`.spec.list | all(. > 0)`,
		`[true, false] | any, all`, `def map(f): f; 1 | map(. + 1)`,
		`.spec.list | length`, `.metadata | has("name")`, `"é" | explode | implode`, `[splits("a")]?`,
		`.spec.list[.metadata.name]?`, `"abcabc" | gsub("b"; "x")`, `"abcabc" | sub("(?<y>b)"; "<\(.y)>")`,
		`"aéc" | gsub("(?<y>.)"; .y + "-")`, `"abc" | gsub(""; "-")`, `"abc" | [gsub("(?<y>.)"; .y, "z")]`,
		`"abc" | gsub("x"; "z")`, `"aBc" | gsub("b"; "z"; "i")`, `"abc" | [gsub("b"; empty)]`,
		`"a1b2" | [scan("[0-9]")]`,
		`"a1b2" | [scan("([a-z])([0-9])")]`, `"a1" | capture("(?<l>[a-z])(?<d>[0-9])")`,
		`"abab" | [match("b"; "g").offset]`,
		`"a, b" | [splits(", *"; "g")]`, `"a1b" | split("[0-9]"; "g")`, `.spec | walk(if type == "number" then . + 1 end)`,
		`.spec | walk(if type == "object" then del(.text) else . end)`, `{a: [1, {b: 2}]} | [walk(numbers)]`,
		`[paths]`, `[paths(type == "number")]`, `del(.spec.list[1], .metadata["labels"])`, `del(.)`, `del(.x.y)`,
		`[{a: 2}, {a: 1}, {a: 2}] | sort_by(.a), group_by(.a), unique_by(.a), min_by(.a), max_by(.a)`,
		`[{a: 2, b: 1}, {a: 1}] | sort_by(.b, .a)`, `"x" | test("X"; "i")`, `"abc" | [match("(z)?b").captures]`,
		`def length: 7; def match($a; $b): 8; "abc" | gsub("b"; "d")`, `def sub(a; b): 5; sub(1; 2), ("a" | gsub("a"; "b"))`,
	} {
		own, err := gojq.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		o := objectOf(hostileObject)
		q, err := compileJQ(text)
		if err != nil {
			if !strings.Contains(err.Error(), "cannot use") || strings.Contains(text, "gsub") {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		got, err := q.values(t.Context(), o)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		var want []any
		for all := own.Run(o.forJQ); ; {
			v, ok := all.Next()
			if _, failed := v.(error); failed {
				want = nil
				break
			}
			if !ok {
				break
			}
			if v != nil {
				want = append(want, v)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// TestGuarded compares templates with bounded functions with sprig's own.
func TestGuarded(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{{repeat 3 "x"}}`, `{{until 3}}`, `{{seq 1 2 9}}`, `{{indent 2 "a\nb"}}`, `{{list 1 "b" | toJson}}`,
		`{{printf "%5d|%-3s" 7 "x"}}`,
		`{{range $i, $e := until 3}}{{$i}}{{$e}},{{else}}none{{end}}`, `{{range list}}x{{else}}none{{end}}`,
		`{{define "a"}}<{{.}}>{{end}}{{template "a" 1}}{{template "a" 2}}`, `{{dict "a" 1 "b" (list 2)}}`,
		`{{with .x}}{{.}}{{else}}no{{end}}`, `{{"a,b" | splitList "," | join "-" | upper | quote}}`,
		`{{trunc 2 "abc"}}`,
		`{{regexReplaceAll "a(.)" "abac" "<$1>"}}`, `{{add 1 2 3}}{{mul 2 3}}{{max 1 5}}`, `{{default "d" ""}}`,
		`{{print 1 2 "x"}}`,
		`{{"2020-01-01" | toDate "2006-01-02" | date "2006"}}`, `{{ternary "a" "b" true}}`, `{{html "<"}}`,
		`{{fail "no"}}`, `{{index (list 1 2) 1}}`,
		`{{atoi "12" | int64 | toString}}`, `{{semverCompare ">=1.0.0" "1.2.3"}}`, `{{uniq (list 1 1 2)}}`,
		`{{b64enc "x" | b64dec}}`,
	} {
		var got, want bytes.Buffer
		parsed, err := parseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time after the first
			s, err := parsed.take()
			if err != nil {
				t.Fatal(err)
			}
			got.Reset()
			err = s.own.Execute(&got, nil)
			want.Reset()
			failure := template.Must(template.New("").Funcs(sprig.TxtFuncMap()).Parse(text)).Execute(&want, nil)
			if got.String() != want.String() || (err == nil) != (failure == nil) {
				t.Errorf("%s: %q, %v; want %q, %v", text, got.String(), err, want.String(), failure)
			}
			parsed.idle.Put(s)
		}
	}
}
