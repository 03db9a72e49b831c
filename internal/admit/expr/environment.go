package expr

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"

	schemacel "github.com/bowsprit/bowsprit/internal/object/schema/cel"
)

// Scope selects the variables of an expression in addition to object, oldObject, request and namespaceObject.
type Scope struct {
	Params     bool // params
	Authorizer bool // authorizer and authorizer.requestResource
	Patch      bool // the types Object and JSONPatch, and jsonpatch.escapeKey
}

// Names of the variables.
const (
	objectName          = "object"
	oldObjectName       = "oldObject"
	paramsName          = "params"
	requestName         = "request"
	namespaceName       = "namespaceObject"
	authorizerName      = "authorizer"
	requestResourceName = "authorizer.requestResource"
	variablesName       = "variables"
)

// always is the version of features in every compatibility version.
var always = version.MajorMinor(1, 0)

// shared holds the environments without variables, by scope.
var shared = func() map[Scope]func() *environment.EnvSet {
	m := map[Scope]func() *environment.EnvSet{}
	for i := range 8 {
		s := Scope{Params: i&1 != 0, Authorizer: i&2 != 0, Patch: i&4 != 0}
		m[s] = schemacel.ForReleases(func(v *version.Version) *environment.EnvSet { return scoped(s, v) })
	}
	return m
}()

// scoped builds the environment of a scope. It panics if the libraries linked into the binary do not fit together.
func scoped(s Scope, compatible *version.Version) *environment.EnvSet {
	request, namespace := requestType(), namespaceType()
	declared := []cel.EnvOption{
		cel.Variable(objectName, cel.DynType),
		cel.Variable(oldObjectName, cel.DynType),
		cel.Variable(namespaceName, namespace.CelType()),
		cel.Variable(requestName, request.CelType()),
	}
	if s.Params {
		declared = append(declared, cel.Variable(paramsName, cel.DynType))
	}
	if s.Authorizer {
		declared = append(declared,
			cel.Variable(authorizerName, library.AuthorizerType),
			cel.Variable(requestResourceName, library.ResourceCheckType))
	}
	options := []environment.VersionedOptions{
		{IntroducedVersion: always, EnvOptions: declared, DeclTypes: []*apiservercel.DeclType{namespace, request}},
		environment.StrictCostOpt,
	}
	options = append(options, environment.VersionedOptions{
		IntroducedVersion: always, EnvOptions: schemacel.Quantities(), ProgramOptions: schemacel.Bounds(),
	})
	set := extend(environment.MustBaseEnvSet(compatible), options...)
	if s.Patch {
		set = extend(set, environment.VersionedOptions{IntroducedVersion: always, EnvOptions: []cel.EnvOption{
			common.ResolverEnvOption(&mutation.DynamicTypeResolver{}),
			environment.UnversionedLib(library.JSONPatch),
		}})
	}
	return set
}

// withVariables adds the type of one policy's variables.
func withVariables(set *environment.EnvSet, t *apiservercel.DeclType) *environment.EnvSet {
	return extend(set, environment.VersionedOptions{
		IntroducedVersion: always,
		EnvOptions:        []cel.EnvOption{cel.Variable(variablesName, t.CelType())},
		DeclTypes:         []*apiservercel.DeclType{t},
	})
}

func extend(set *environment.EnvSet, options ...environment.VersionedOptions) *environment.EnvSet {
	out, err := set.Extend(options...)
	if err != nil {
		panic(fmt.Errorf("cel environment of admission: %w", err))
	}
	return out
}

func fieldsOf(fields ...*apiservercel.DeclField) map[string]*apiservercel.DeclField {
	m := make(map[string]*apiservercel.DeclField, len(fields))
	for _, f := range fields {
		m[f.Name] = f
	}
	return m
}

func required(name string, t *apiservercel.DeclType) *apiservercel.DeclField {
	return apiservercel.NewDeclField(name, t, true, nil, nil)
}

func optional(name string, t *apiservercel.DeclType) *apiservercel.DeclField {
	return apiservercel.NewDeclField(name, t, false, nil, nil)
}

func listOf(t *apiservercel.DeclType) *apiservercel.DeclType { return apiservercel.NewListType(t, -1) }

func mapOf(t *apiservercel.DeclType) *apiservercel.DeclType {
	return apiservercel.NewMapType(apiservercel.StringType, t, -1)
}

// requestType is the type of request: an AdmissionRequest without objects.
func requestType() *apiservercel.DeclType {
	text := apiservercel.StringType
	gvk := apiservercel.NewObjectType("kubernetes.GroupVersionKind",
		fieldsOf(required("group", text), required("version", text), required("kind", text)))
	gvr := apiservercel.NewObjectType("kubernetes.GroupVersionResource",
		fieldsOf(required("group", text), required("version", text), required("resource", text)))
	userInfo := apiservercel.NewObjectType("kubernetes.UserInfo", fieldsOf(
		optional("username", text), optional("uid", text), optional("groups", listOf(text)),
		optional("extra", mapOf(listOf(text)))))
	return apiservercel.NewObjectType("kubernetes.AdmissionRequest", fieldsOf(
		required("kind", gvk), required("resource", gvr), optional("subResource", text),
		required("requestKind", gvk), required("requestResource", gvr), optional("requestSubResource", text),
		required("name", text), optional("namespace", text), required("operation", text),
		required("userInfo", userInfo),
		optional("dryRun", apiservercel.BoolType), optional("options", apiservercel.DynType)))
}

// namespaceType is the type of namespaceObject: a Namespace without its changing status fields. As in Kubernetes, UID
// is spelled such that the object's field metadata.uid cannot be used.
func namespaceType() *apiservercel.DeclType {
	text, number, timestamp := apiservercel.StringType, apiservercel.IntType, apiservercel.TimestampType
	condition := apiservercel.NewObjectType("kubernetes.NamespaceCondition", fieldsOf(
		required("status", text), required("type", text), required("lastTransitionTime", timestamp),
		required("message", text), required("reason", text)))
	metadata := apiservercel.NewObjectType("kubernetes.NamespaceMetadata", fieldsOf(
		required("name", text), required("generateName", text), required("namespace", text),
		required("labels", mapOf(text)),
		required("annotations", mapOf(text)), required("UID", text), required("creationTimestamp", timestamp),
		required("deletionGracePeriodSeconds", number), required("deletionTimestamp", timestamp),
		required("generation", number),
		required("resourceVersion", text), required("finalizers", listOf(text))))
	return apiservercel.NewObjectType("kubernetes.Namespace", fieldsOf(
		required("metadata", metadata),
		required("spec",
			apiservercel.NewObjectType("kubernetes.NamespaceSpec", fieldsOf(required("finalizers", listOf(text))))),
		required("status",
			apiservercel.NewObjectType("kubernetes.NamespaceStatus",
				fieldsOf(required("conditions", listOf(condition)), required("phase", text))))))
}
