package cel

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	kubeenv "k8s.io/apiserver/pkg/cel/environment"
)

// environment is the part shared by all expressions: Kubernetes' functions and macros, and the machinery built from
// them once. It is immutable after newEnvironment, apart from state that cel-go itself guards.
//
// cel.Env can do all of this on its own, but extending an Env and planning a program each copy every function
// declaration: milliseconds and 100 KB per rule instead of microseconds.
type environment struct {
	env         *cel.Env       // parses, validates literals, estimates costs
	decls       *checker.Env   // declarations, copied by each scope
	scalars     types.Provider // Kubernetes' provider without any declared type
	interpreter interpreter.Interpreter
}

// Kubernetes keeps two environments, so that a control plane can be rolled back by one release: new expressions must
// not use features that the previous release lacks.
var (
	// kubeEnvironments returns the environments for rollback to a release.
	kubeEnvironments = ForReleases(bounded)
	// newExpressions returns the environment for new expressions.
	newExpressions = ForReleases(func(*version.Version) *environment {
		return newEnvironment(kubeEnvironments().NewExpressionsEnv())
	})
	// storedExpressions is the environment for expressions accepted before, and for running all of them.
	storedExpressions = sync.OnceValue(func() *environment {
		return newEnvironment(kubeEnvironments().StoredExpressionsEnv())
	})
)

// Bounded returns Kubernetes' own environments, for its libraries, with bounds for quantities and calls.
func Bounded() *kubeenv.EnvSet { return bounded(kubeenv.DefaultCompatibilityVersion()) }

func bounded(v *version.Version) *kubeenv.EnvSet {
	set, err := kubeenv.MustBaseEnvSet(v).Extend(kubeenv.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: Quantities(), ProgramOptions: Bounds(),
	})
	if err != nil {
		panic(fmt.Errorf("cel environment: %w", err))
	}
	return set
}

// CompatibilityVersion returns the oldest release of Kubernetes to which a control plane can be rolled back: the one
// before ours, or an older one set by KeepCompatible. New expressions use only its features. The libraries' own default
// follows their version, which a program that imports us may raise.
func CompatibilityVersion() *version.Version {
	return version.MajorMinor(1, newest-uint(rolledBack.Load()))
}

// newest is the newest release with an effect, the one before ours.
const newest = 36

// rolledBack is the number of releases from CompatibilityVersion to newest. It only grows: a feature forbidden for one
// server of the process is forbidden for all.
var rolledBack atomic.Uint32

// KeepCompatible limits new expressions to the features of release v, in the whole process, from now on. Call it at the
// start of a server.
func KeepCompatible(v *version.Version) {
	for {
		was := rolledBack.Load()
		if v.Minor() >= newest-uint(was) ||
			rolledBack.CompareAndSwap(was, uint32(newest-v.Minor())) { //nolint:gosec // a small number
			return
		}
	}
}

// ForReleases returns a function with build's result for CompatibilityVersion, computed once for each.
func ForReleases[T any](build func(*version.Version) T) func() T {
	var made sync.Map // func() T by minor version
	return func() T {
		v := CompatibilityVersion()
		once, ok := made.Load(v.Minor())
		if !ok {
			once, _ = made.LoadOrStore(v.Minor(), sync.OnceValue(func() T { return build(v) }))
		}
		return once.(func() T)()
	}
}

// newEnvironment takes env apart. It panics if the linked libraries are incompatible with each other.
func newEnvironment(env *cel.Env) *environment {
	e, err := buildEnvironment(env)
	if err != nil {
		panic(fmt.Errorf("cel environment: %w", err))
	}
	return e
}

func buildEnvironment(env *cel.Env) (*environment, error) {
	decls, err := checker.NewEnv(env.Container, env.CELTypeProvider(), checker.CrossTypeNumericComparisons(true))
	if err != nil {
		return nil, err
	}
	if err := decls.AddIdents(env.Variables()...); err != nil {
		return nil, err
	}
	dispatcher := interpreter.NewDispatcher()
	for _, f := range env.Functions() {
		if !f.IsDeclarationDisabled() {
			if err := decls.AddFunctions(f); err != nil {
				return nil, err
			}
		}
		bindings, err := f.Bindings()
		if err != nil {
			return nil, err
		}
		if err := dispatcher.Add(bindings...); err != nil {
			return nil, err
		}
	}
	provider := apiservercel.NewDeclTypeProvider()
	provider.SetRecognizeKeywordAsFieldName(true)
	scalars, err := provider.WithTypeProvider(env.CELTypeProvider())
	if err != nil {
		return nil, err
	}
	attributes := interpreter.NewAttributeFactory(env.Container, env.CELTypeAdapter(), env.CELTypeProvider())
	return &environment{
		env:     env,
		decls:   decls,
		scalars: scalars,
		interpreter: interpreter.NewInterpreter(dispatcher, env.Container, env.CELTypeProvider(), env.CELTypeAdapter(),
			attributes),
	}, nil
}

// check parses source and checks its types with decls. issues are cel-go's, nil without any.
func (e *environment) check(source string, decls *checker.Env) (*cel.Ast, *cel.Issues) {
	text := common.NewTextSource(source)
	ast, issues := e.env.ParseSource(text)
	if issues.Err() != nil {
		return nil, issues
	}
	native := ast.NativeRep()
	checked, errs := checker.Check(native, text, decls)
	if len(errs.GetErrors()) > 0 {
		return nil, cel.NewIssuesWithSourceInfo(errs, native.SourceInfo())
	}
	// The checker's result shares the expressions of its input; types and references turn ast into the checked one.
	for id, t := range checked.TypeMap() {
		native.SetType(id, t)
	}
	for id, r := range checked.ReferenceMap() {
		native.SetReference(id, r)
	}
	issues = cel.NewIssuesWithSourceInfo(errs, native.SourceInfo())
	config := validatorConfig{cel.HomogeneousAggregateLiteralExemptFunctions: []string{}}
	validators := e.env.Validators()
	for _, v := range validators {
		if c, ok := v.(cel.ASTValidatorConfigurer); ok {
			if err := c.Configure(config); err != nil {
				continue // as in cel-go, the option keeps its default
			}
		}
	}
	for _, v := range validators {
		v.Validate(e.env, config, native, issues)
	}
	if issues.Err() != nil {
		return nil, issues
	}
	return ast, nil
}

// plan makes ast executable. With a limit of its cost, the result is an *interpreter.ObservableInterpretable that
// counts costs.
func (e *environment) plan(ast *cel.Ast, limit uint64) (interpreter.Interpretable, error) {
	options := []interpreter.PlannerOption{
		interpreter.CustomDecorator(planOptionalChoice),
		interpreter.CustomDecorator(boundCalls),
		interpreter.Optimize(),
		interpreter.InterruptableEval(),
		interpreter.CompileRegexConstants(literalPatterns()...),
	}
	if limit > 0 {
		options = append(options, interpreter.CostObserver(interpreter.CostTrackerFactory(newCostTracker(limit))))
	}
	return e.interpreter.NewInterpretable(ast.NativeRep(), options...)
}

// validatorConfig configures cel-go's validators of literals.
type validatorConfig map[string]any

var _ cel.MutableValidatorConfig = validatorConfig{}

func (c validatorConfig) GetOrDefault(name string, value any) any {
	if v, ok := c[name]; ok {
		return v
	}
	return value
}

func (c validatorConfig) Set(name string, value any) error {
	if old, ok := c[name]; ok && fmt.Sprintf("%T", old) != fmt.Sprintf("%T", value) {
		return fmt.Errorf("incompatible configuration type for %s, got %T, wanted %T", name, value, old)
	}
	c[name] = value
	return nil
}
