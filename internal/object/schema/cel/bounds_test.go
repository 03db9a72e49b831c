package cel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kubeenv "k8s.io/apiserver/pkg/cel/environment"
)

// hostile is an object for expensive calls.
func hostile() map[string]any {
	const n = 300_000
	list := func(prefix string, n int) (out []any) {
		for i := range n {
			out = append(out, fmt.Sprint(prefix, i))
		}
		return out
	}
	return map[string]any{
		"a": strings.Repeat("a", n), "half": strings.Repeat("a", n/2) + "b", "k": strings.Repeat("k", 3000),
		"pattern": strings.Repeat("(?:a{10}){100}", 3000), "format": strings.Repeat("%s", 1000),
		"texts": list("s", 20_000), "others": list("t", 20_000), "long": list(strings.Repeat("z", 40_000), 60),
	}
}

// evaluateHostile returns the errors of a rule about the hostile object, and the memory that the evaluation takes
// altogether.
func evaluateHostile(t *testing.T, rule string) (text string, taken uint64) {
	t.Helper()
	properties := map[string]apiextensionsv1.JSONSchemaProps{}
	obj := hostile()
	for name, v := range obj {
		properties[name] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		if _, ok := v.([]any); ok {
			properties[name] = *arrayOf(apiextensionsv1.JSONSchemaProps{Type: "string"})
		}
	}
	node := compileSpec(t, &apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: properties, XValidations: apiextensionsv1.ValidationRules{{Rule: rule}},
	})
	rules := New(node, true)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	errs := rules.Evaluate(t.Context(), map[string]any{"spec": obj}, nil, nil)
	runtime.ReadMemStats(&after)
	for _, e := range errs {
		text += e.Detail
	}
	return text, after.TotalAlloc - before.TotalAlloc
}

// TestCallsAreBounded evaluates calls that would take minutes or gigabytes, and expects errors.
func TestCallsAreBounded(t *testing.T) {
	cost := "no further validation rules will be run"
	for rule, want := range map[string]string{
		`'x'.matches(self.pattern)`:                                         "more than 500000 instructions",
		`'x'.find(self.pattern) == ''`:                                      "more than 500000 instructions",
		`'x'.findAll(self.pattern) == []`:                                   "more than 500000 instructions",
		`self.a.replace('a', self.k) == ''`:                                 "replace: the result would be longer",
		`self.a.replace('', self.k) == ''`:                                  "replace: the result would be longer",
		`self.a.split('').join(self.k) == ''`:                               cost,
		`self.texts.join(self.k) == ''`:                                     cost,
		`self.format.format(self.texts.map(x, self.a)) == ''`:               "format: the result would be longer",
		`'%.999999999f'.format([1.0]) == ''`:                                "format: the result would be longer",
		`'%s'.format([self.long.map(x, self.long)]) == ''`:                  "format: the result would be longer",
		`self.texts.map(x, self.texts).flatten() == []`:                     "flatten: the list has more",
		`lists.range(1000000000) == []`:                                     cost,
		`sets.contains(self.texts, self.texts)`:                             cost,
		`sets.equivalent(self.texts, self.texts)`:                           cost,
		`sets.intersects(self.texts, self.others)`:                          cost,
		`sets.contains([self.texts], self.others.map(x, self.texts))`:       "too many elements inside",
		`self.texts.distinct() == []`:                                       cost,
		`self.texts.sort() == []`:                                           cost,
		`self.texts.sortBy(x, x) == []`:                                     cost,
		`self.a.indexOf(self.half) == -1`:                                   "",
		`self.a.lastIndexOf(self.half) == -1`:                               "",
		`self.a.indexOf(self.half, 10) == -1`:                               "",
		`self.a.lastIndexOf(self.half, 200000) == -1`:                       "",
		`self.a.matches('^a*$') && self.a.find('a') == 'a'`:                 "",
		`self.a.findAll('a').size() == 300000`:                              "",
		`self.a.replace('a', 'bb').size() == 600000`:                        "",
		`self.long.join('-').size() > 2000000`:                              "",
		`'%s'.format([self.a]).size() == 300000`:                            "",
		`lists.range(10).reverse().slice(0, 2) == [9, 8]`:                   "",
		`[[1, 2], [3]].flatten() == [1, 2, 3]`:                              "",
		`sets.contains(self.texts.slice(0, 100), ['s1'])`:                   "",
		`'%.3f'.format([1.0]) == '1.000' && ['b', 'a'].sort() == ['a','b']`: "",
	} {
		got, taken := evaluateHostile(t, rule)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %.300q, want %q", rule, got, want)
		}
		if taken > 200<<20 {
			t.Errorf("%s: %d MB", rule, taken>>20)
		}
	}
}

// TestMatchesEnd matches patterns for a request that has ended: the text is so long that a match would take minutes.
func TestMatchesEnd(t *testing.T) {
	env, err := Bounded().StoredExpressionsEnv().Extend(cel.Variable("x", cel.StringType))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, expression := range []string{
		"x.matches('(?:a?){1000}b' + '')", "x.matches('(?:a?){1000}b')", "x.find('(?:a?){1000}b') == ''",
		"x.findAll('(?:a?){1000}b') == []", "x.findAll('a.*b|a') == []", "x.findAll('a.*b|a' + '') == []",
	} {
		ast, issues := env.Compile(expression)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		program, err := env.Program(ast, cel.InterruptCheckFrequency(100))
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = program.ContextEval(ctx, map[string]any{"x": strings.Repeat("a", 300_000)})
		if err == nil || !strings.Contains(err.Error(), "operation interrupted") {
			t.Errorf("%s: %v", expression, err)
		}
	}
	closed := make(chan struct{})
	close(closed)
	for _, done := range []chan struct{}{closed, nil} {
		frame, err := (&activation{done: done}).frame()
		if err != nil {
			t.Fatal(err)
		}
		if isInterrupted(frame) != (done != nil) {
			t.Error("the evaluation of a rule does not end with its request")
		}
		frame.Close()
	}
}

// TestBoundedCallsMatchKubernetes compares the results of bounded functions with Kubernetes' programs, for random
// arguments.
func TestBoundedCallsMatchKubernetes(t *testing.T) {
	declared := cel.Variable("x", cel.DynType)
	theirs, err := kubeenv.MustBaseEnvSet(kubeenv.DefaultCompatibilityVersion()).StoredExpressionsEnv().Extend(declared)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := Bounded().StoredExpressionsEnv().Extend(declared)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range r.IntN(6) {
			b.WriteString([]string{"a", "b", "é", "ab", "%s", "%d", "%.2f", "a*", "(", "^"}[r.IntN(10)])
		}
		return b.String()
	}
	for range 3000 {
		a, b, c, n := text(), text(), text(), r.IntN(8)-2
		expression := []string{
			"%[1]q.indexOf(%[2]q)", "%[1]q.lastIndexOf(%[2]q)", "%[1]q.indexOf(%[2]q, %[4]d)",
			"%[1]q.lastIndexOf(%[2]q, %[4]d)", "%[1]q.replace(%[2]q, %[3]q)", "%[1]q.replace(%[2]q, %[3]q, %[4]d)",
			"[%[1]q, %[2]q].join(%[3]q)", "[%[1]q, %[2]q].join()", "%[1]q.matches(%[2]q)", "%[1]q.find(%[2]q)",
			"%[1]q.findAll(%[2]q)", "%[1]q.findAll(%[2]q, %[4]d)", "%[1]q.format([%[2]q, %[4]d, 1.5])",
			"matches(%[1]q, [%[2]q][0])", "[%[1]q][0].find([%[2]q][0])", "[%[1]q][0].findAll([%[2]q][0], %[4]d)",
			"[%[1]q, %[2]q, %[3]q].sort()", "[%[1]q, %[2]q, %[1]q].distinct()", "lists.range(%[4]d).reverse()",
			"[%[4]d, 2, 3].slice(0, %[4]d)", "[[%[4]d], [[2]]].flatten()", "[[%[4]d], [[2]]].flatten(%[4]d)",
			"sets.contains([%[1]q, %[2]q], [%[3]q])", "x.matches(%[1]q)", "x.find(%[1]q)", "x.indexOf(%[1]q)",
			"%[1]q.matches(x)", "%[1]q.replace(x, %[2]q)", "x.join()", "x.flatten()", "x.sort()", "[%[1]q].join(x)",
			"sets.contains([x][1], [%[1]q, x])", "[%[1]q].join([x][1])", "%[1]q.replace([x][1], %[2]q + x)",
		}[r.IntN(35)]
		expression = fmt.Sprintf(expression, a, b, c, n)
		in := []any{a, int64(n), []any{a, b}, nil}[r.IntN(4)]
		got, want := outcome(ours, expression, in), outcome(theirs, expression, in)
		if got != want {
			t.Errorf("%s for %v: got %s, want %s", expression, in, got, want)
		}
	}
}

// outcome returns the result or the error of an expression, and its cost.
func outcome(env *cel.Env, expression string, x any) string {
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return "does not compile"
	}
	program, err := env.Program(ast)
	if err != nil {
		return "no program: " + err.Error()
	}
	out, details, err := program.Eval(map[string]any{"x": x})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(env.CELTypeAdapter().NativeToValue(out.Value()), *details.ActualCost())
}
