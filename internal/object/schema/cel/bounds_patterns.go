package cel

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/bowsprit/bowsprit/internal/object/schema/format"
)

// mostDynamic is the size of the largest pattern that is not part of an expression. Its compilation takes about 0.2
// seconds and 40 MB.
const mostDynamic = 500_000

// literal is a compiled pattern of an expression.
type literal struct {
	re   *regexp.Regexp
	size int
}

// search is a function with a pattern. literal is nil if the pattern is an argument.
type search func(over func() bool, literal *literal, args []ref.Val) ref.Val

var searches = map[string]search{"matches": matches, "find": find, "findAll": findAll}

// literalPatterns returns optimizations that compile the patterns of an expression once.
func literalPatterns() (out []*interpreter.RegexOptimization) {
	for function, overloads := range map[string][]string{
		"matches": {"matches", "matches_string"}, "find": {"string_find_string"},
		"findAll": {"string_find_all_string", "string_find_all_string_int"},
	} {
		search := searches[function]
		for _, overload := range overloads {
			out = append(out, &interpreter.RegexOptimization{
				Function: function, OverloadID: overload, RegexIndex: 1,
				Factory: func(call interpreter.InterpretableCall, text string) (interpreter.InterpretableCall, error) {
					re, err := regexp.Compile(text)
					if err != nil {
						return nil, err
					}
					l := &literal{re, format.PatternSize(text)}
					return &boundedCall{call, false, func(frame *frame, args []ref.Val) ref.Val {
						return search(func() bool { return isInterrupted(frame) }, l, args)
					}}, nil
				},
			})
		}
	}
	return out
}

var errInterrupted = errors.New("operation interrupted")

func matches(over func() bool, l *literal, args []ref.Val) ref.Val {
	text, ok := args[0].(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	p, wrong := patternOf(l, args[1], "%w")
	if wrong != nil {
		return wrong
	}
	matched, ended := p.Match(string(text), over)
	if ended {
		return types.WrapErr(errInterrupted)
	}
	return types.Bool(matched)
}

func find(over func() bool, l *literal, args []ref.Val) ref.Val {
	text, ok := args[0].Value().(string)
	if !ok {
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	p, wrong := patternOf(l, args[1], "Illegal regex: %w")
	if wrong != nil {
		return wrong
	}
	at, ended := p.Find(text, over)
	switch {
	case ended:
		return types.WrapErr(errInterrupted)
	case at == nil:
		return types.String("")
	}
	return types.String(text[at[0]:at[1]])
}

func findAll(over func() bool, l *literal, args []ref.Val) ref.Val {
	text, ok := args[0].Value().(string)
	if !ok {
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	n := int64(-1)
	if len(args) == 3 {
		if n, ok = args[2].Value().(int64); !ok {
			return types.MaybeNoSuchOverloadErr(args[2])
		}
	}
	p, wrong := patternOf(l, args[1], "Illegal regex: %w")
	if wrong != nil {
		return wrong
	}
	found, ended := p.FindAll(text, int(n), over)
	if ended {
		return types.WrapErr(errInterrupted)
	}
	return types.NewStringList(types.DefaultTypeAdapter, found)
}

// patternOf returns the pattern of a call, or an error in Kubernetes' words.
func patternOf(l *literal, arg ref.Val, invalid string) (*format.Pattern, ref.Val) {
	if l != nil {
		return format.NewPattern(l.re, l.size), nil
	}
	text, ok := arg.Value().(string)
	if !ok {
		return nil, types.MaybeNoSuchOverloadErr(arg)
	}
	size := format.PatternSize(text)
	if size > mostDynamic {
		return nil, types.NewErr("the pattern compiles to more than %d instructions; repeat counts multiply them",
			mostDynamic)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, types.WrapErr(fmt.Errorf(invalid, err))
	}
	return format.NewPattern(re, size), nil
}
