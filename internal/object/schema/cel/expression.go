package cel

import (
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// The variables of expressions.
const (
	selfName    = "self"
	oldSelfName = "oldSelf"
)

// scope holds the types of self and oldSelf for compiling the rules of one place. It belongs to one goroutine and is
// dropped afterwards.
type scope struct {
	self     typedNode
	name     string // name of self's type, if it is an object
	declared typeSet
	checkers map[checkerKey]*checker.Env
}

type checkerKey struct {
	env      *environment
	optional bool // oldSelf is an optional value
}

// newScope returns the scope of a visible place. rules are the rules to compile in it.
//
// The names of types must not be predictable for rules; kube-apiserver derives them from the clock. Here they are
// derived from the text of the rules, which no rule can predict but tests can.
func newScope(self typedNode, rules apiextensionsv1.ValidationRules) *scope {
	h := fnv.New32a()
	for i := range rules {
		h.Write([]byte(rules[i].Rule))
	}
	return &scope{
		self:     self,
		name:     fmt.Sprintf("selfType%d", h.Sum32()),
		declared: typeSet{},
		checkers: map[checkerKey]*checker.Env{},
	}
}

// checker returns the type checker of expressions in s.
func (s *scope) checker(env *environment, optional bool) (*checker.Env, error) {
	key := checkerKey{env, optional}
	if c := s.checkers[key]; c != nil {
		return c, nil
	}
	c, err := checker.NewEnv(env.env.Container, &provider{env.scalars, s.declared},
		checker.ValidatedDeclarations(env.decls), checker.CrossTypeNumericComparisons(true))
	if err != nil {
		return nil, err
	}
	self := s.declared.declare(s.self, s.name)
	old := self
	if optional {
		old = types.NewOptionalType(self)
	}
	if err := c.AddIdents(decls.NewVariable(selfName, self), decls.NewVariable(oldSelfName, old)); err != nil {
		return nil, err
	}
	s.checkers[key] = c
	return c, nil
}

// expression is a checked and planned expression.
type expression struct {
	ast         *cel.Ast
	usesOldSelf bool
	program     interpreter.Interpretable // does not count costs
}

// role is the purpose of an expression: its type, nil for any, and its description in messages.
type role struct {
	result                                         *cel.Type
	compiling, mistyped, instantiation, estimating string
	limit                                          uint64 // of the cost of a call
}

var (
	ruleRole = role{cel.BoolType, "compilation failed: ", "cel expression must evaluate to a bool",
		"program instantiation failed: ", "cost estimation failed: ", celconfig.PerCallLimit}
	messageRole = role{cel.StringType, "messageExpression compilation failed: ",
		"messageExpression must evaluate to a string",
		"messageExpression instantiation failed: ", "cost estimation failed for messageExpression: ",
		celconfig.PerCallLimit}
)

// compile compiles source to an expression.
func (s *scope) compile(env *environment, source string, optional bool, r role) (*expression, error) {
	ast, err := s.check(env, source, optional, r)
	if err != nil {
		return nil, err
	}
	e := &expression{ast: ast}
	for _, ref := range ast.NativeRep().ReferenceMap() {
		if ref.Name == oldSelfName {
			e.usesOldSelf = true
			break
		}
	}
	if e.program, err = env.plan(ast, 0); err != nil {
		return nil, errors.New(r.instantiation + err.Error())
	}
	return e, nil
}

// check parses source and checks its types.
func (s *scope) check(env *environment, source string, optional bool, r role) (*cel.Ast, error) {
	decls, err := s.checker(env, optional)
	if err != nil {
		return nil, err
	}
	ast, issues := env.check(source, decls)
	if issues.Err() != nil {
		return nil, errors.New(r.compiling + issues.String())
	}
	if r.result != nil && ast.OutputType() != r.result {
		return nil, errors.New(r.mistyped)
	}
	return ast, nil
}

// tracked returns the program of source that counts its costs. source must compile.
func (s *scope) tracked(env *environment, source string, optional bool, r role) (*interpreter.ObservableInterpretable,
	error) {
	ast, err := s.check(env, source, optional, r)
	if err != nil {
		return nil, err
	}
	program, err := env.plan(ast, r.limit)
	if err != nil {
		return nil, err
	}
	return program.(*interpreter.ObservableInterpretable), nil
}
