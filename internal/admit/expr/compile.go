package expr

import (
	"fmt"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Expression is one compiled expression.
type Expression struct {
	// Source is its text.
	Source string
	// Err is the compile error, if any.
	Err *apiservercel.Error
	// Namespace reports whether it uses namespaceObject, directly or through a variable.
	Namespace bool

	output    *cel.Type // nil if it did not compile
	program   cel.Program
	simple    interpreter.Interpretable // does not count costs; nil if the expression may be expensive
	most      uint64                    // maximum cost, if simple
	variables *variables                // nil without
}

// variables are the named expressions of a policy, in the order of their declaration.
type variables struct {
	typ   *apiservercel.DeclType
	names []string
	exprs []*Expression
}

// Release frees the program of an expression that is only checked, about 100 KB. Its type remains.
func (e *Expression) Release() { e.program, e.simple = nil, nil }

// Mode distinguishes new from stored expressions. New expressions must not use features that the previous release
// lacks, so that a control plane can be rolled back.
type Mode = environment.Type

// Modes.
const (
	New    = environment.NewExpressions
	Stored = environment.StoredExpressions
)

// Compiler compiles the expressions of one policy or webhook.
type Compiler struct {
	// Ended reports whether the request has ended; then Compile returns an expression that is neither compiled nor
	// wrong. nil means that no request waits.
	Ended func() bool

	variables *variables
	envs      map[Scope]*environment.EnvSet // with variables only
}

// Composed returns a compiler with support for Variable. The zero Compiler has no variables.
func Composed() *Compiler {
	return &Compiler{
		variables: &variables{
			typ: apiservercel.NewObjectType("kubernetes.variables", map[string]*apiservercel.DeclField{}),
		},
		envs: map[Scope]*environment.EnvSet{},
	}
}

// Variable declares a variable for expressions compiled later. c must be Composed.
func (c *Compiler) Variable(name, source string, s Scope, mode Mode) *Expression {
	e := c.Compile(source, s, mode, cel.AnyType)
	v := c.variables
	v.typ.Fields[name] = apiservercel.NewDeclField(name, declType(e.output), true, nil, nil)
	for i := range v.names {
		if v.names[i] == name {
			v.exprs[i] = e
			return e
		}
	}
	v.names, v.exprs = append(v.names, name), append(v.exprs, e)
	return e
}

// Compile compiles an expression with one of the given result types; Any allows all of them.
func (c *Compiler) Compile(source string, s Scope, mode Mode, want ...*Type) *Expression {
	e := &Expression{Source: source, variables: c.variables}
	if c.Ended != nil && c.Ended() {
		return e
	}
	fail := func(t apiservercel.ErrorType, cause error, format string, args ...any) *Expression {
		e.Err = &apiservercel.Error{Type: t, Detail: fmt.Sprintf(format, args...), Cause: cause}
		return e
	}
	env, err := c.env(s).Env(mode)
	if err != nil {
		return fail(apiservercel.ErrorTypeInternal, nil, "unexpected error loading CEL environment: %v", err)
	}
	ast, issues := env.Compile(source)
	if issues != nil {
		return fail(apiservercel.ErrorTypeInvalid, apiservercel.NewCompilationError(issues), "compilation failed: %s",
			issues.String())
	}
	if !oneOf(ast.OutputType(), want) {
		if len(want) == 1 {
			return fail(apiservercel.ErrorTypeInvalid, nil, "must evaluate to %v but got %v", want[0].String(),
				ast.OutputType().String())
		}
		return fail(apiservercel.ErrorTypeInvalid, nil, "must evaluate to one of %v but got %v", want,
			ast.OutputType().String())
	}
	if e.program, err = env.Program(ast, cel.InterruptCheckFrequency(celconfig.CheckFrequency)); err != nil {
		return fail(apiservercel.ErrorTypeInternal, nil, "program instantiation failed: %v", err)
	}
	if e.most = mostOf(ast.NativeRep().Expr()); e.most <= simpleCost {
		if e.simple, err = plan(env, ast); err != nil {
			return fail(apiservercel.ErrorTypeInternal, nil, "program instantiation failed: %v", err)
		}
	}
	e.output = ast.OutputType()
	e.Namespace = c.usesNamespace(ast)
	return e
}

func (c *Compiler) env(s Scope) *environment.EnvSet {
	if c.variables == nil {
		return shared[s]()
	}
	set := c.envs[s]
	if set == nil {
		set = withVariables(shared[s](), c.variables.typ)
		c.envs[s] = set
	}
	return set
}

func oneOf(have *cel.Type, want []*cel.Type) bool {
	for _, t := range want {
		if have.IsExactType(t) || cel.AnyType.IsExactType(t) {
			return true
		}
	}
	return false
}

// usesNamespace detects namespaceObject. If any variable uses it, every mention of variables counts.
func (c *Compiler) usesNamespace(ast *cel.Ast) bool {
	through := false
	if c.variables != nil {
		for _, v := range c.variables.exprs {
			through = through || v.Namespace
		}
	}
	found := false
	celast.PostOrderVisit(ast.NativeRep().Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() == celast.IdentKind {
			found = found || e.AsIdent() == namespaceName || through && e.AsIdent() == variablesName
		}
	}))
	return found
}

// declType returns the declared type of a variable of a CEL type. Types without a counterpart are dyn; so is nil, the
// type of an expression that did not compile.
func declType(t *cel.Type) *apiservercel.DeclType {
	switch t {
	case nil:
		return apiservercel.DynType
	case cel.AnyType:
		return apiservercel.AnyType
	case cel.BoolType:
		return apiservercel.BoolType
	case cel.BytesType:
		return apiservercel.BytesType
	case cel.DoubleType:
		return apiservercel.DoubleType
	case cel.DurationType:
		return apiservercel.DurationType
	case cel.IntType:
		return apiservercel.IntType
	case cel.NullType:
		return apiservercel.NullType
	case cel.StringType:
		return apiservercel.StringType
	case cel.TimestampType:
		return apiservercel.TimestampType
	case cel.UintType:
		return apiservercel.UintType
	}
	if t.HasTrait(traits.ContainerType) && t.HasTrait(traits.IndexerType) {
		switch p := t.Parameters(); len(p) {
		case 1:
			return apiservercel.NewListType(declType(p[0]), -1)
		case 2:
			return apiservercel.NewMapType(declType(p[0]), declType(p[1]), -1)
		}
	}
	return apiservercel.DynType
}
