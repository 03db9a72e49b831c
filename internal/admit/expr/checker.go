package expr

import (
	"fmt"

	"github.com/google/cel-go/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"

	schemacel "github.com/bowsprit/bowsprit/internal/object/schema/cel"
)

// Checker checks the expressions of a policy as if all objects had one kind. Its findings do not prevent the use of an
// expression: without it objects are dyn, and a wrong field is an error only when the expression runs.
type Checker struct {
	set       *environment.EnvSet
	variables *apiservercel.DeclType
}

// ObjectType is the type of the objects of a kind.
type ObjectType = apiservercel.DeclType

// Shapes are the types of a policy's objects; nil is dyn.
type Shapes struct {
	Object *ObjectType
	// Params is the type of the parameters; HasParams is true if there are any.
	Params    *ObjectType
	HasParams bool
}

// Shape returns the type of the objects of a schema without references; nil if the schema does not describe them.
// Errors use name for the type, which must be unique within one Shapes.
func Shape(name string, s *spec.Schema) *ObjectType {
	t := common.SchemaDeclType(&openapi.Schema{Schema: s}, true)
	if t == nil {
		return nil
	}
	return t.MaybeAssignTypeName(name)
}

// NewChecker returns a checker without variables.
func NewChecker(s Shapes) (*Checker, error) {
	request, namespace := requestType(), namespaceType()
	c := &Checker{variables: apiservercel.NewObjectType("kubernetes.variables", map[string]*apiservercel.DeclField{})}
	types := []*apiservercel.DeclType{request, namespace, c.variables}
	typed := func(name string, t *apiservercel.DeclType) cel.EnvOption {
		if t == nil {
			return cel.Variable(name, cel.DynType)
		}
		types = append(types, t)
		return cel.Variable(name, t.CelType())
	}
	declared := []cel.EnvOption{
		cel.Variable(namespaceName, namespace.CelType()), cel.Variable(requestName, request.CelType()),
		cel.Variable(variablesName, c.variables.CelType()),
		typed(objectName, s.Object), typed(oldObjectName, s.Object),
		// Its part authorizer.requestResource is unknown to Kubernetes' type checking, and warned about.
		cel.Variable(authorizerName, library.AuthorizerType),
	}
	if s.HasParams {
		declared = append(declared, typed(paramsName, s.Params))
	}
	var err error
	c.set, err = environment.MustBaseEnvSet(schemacel.CompatibilityVersion()).Extend(
		environment.VersionedOptions{IntroducedVersion: always, EnvOptions: declared, DeclTypes: types})
	if err != nil {
		return nil, fmt.Errorf("cel environment for type checking: %w", err)
	}
	return c, nil
}

// Variable declares a variable for expressions checked later. A wrong one is dyn.
func (c *Checker) Variable(name, source string) {
	output, _ := c.check(source)
	c.variables.Fields[name] = apiservercel.NewDeclField(name, declType(output), true, nil, nil)
}

// Check returns the error of an expression, in the words of CEL's compiler; "" if there is none.
func (c *Checker) Check(source string) string {
	_, wrong := c.check(source)
	return wrong
}

func (c *Checker) check(source string) (output *cel.Type, wrong string) {
	env, err := c.set.Env(Stored)
	if err != nil {
		return nil, fmt.Sprintf("type checking error: fail to build env: %v", err)
	}
	ast, issues := env.Compile(source)
	if issues != nil {
		return nil, issues.String()
	}
	return ast.OutputType(), ""
}
