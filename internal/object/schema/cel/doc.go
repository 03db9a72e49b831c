// Package cel checks and runs the CEL rules of structural schemas (x-kubernetes-validations) exactly like
// kube-apiserver.
//
// Package schema calls it on the path of a write, and package crd when a definition is written. Check reports the
// errors in a definition's rules: they must compile, their cost is limited, and they may use oldSelf only where old and
// new values can be matched. New creates the Rules of a schema, which evaluate them on objects.
//
// Expressions take the steps of cel-go: parse, check types, estimate the cost, plan, evaluate. The environment
// (functions, macros, planner) is built once for the process. A rule's scope adds only the types of self and oldSelf,
// derived from the schema when the type checker requests a field (types.go). So the cost of a rule depends on its own
// text, not on the schema around it. Values are views of the decoded object (value.go); nothing is copied.
//
// Rules are compiled on first use, separately for each place of the schema. They run without counting costs as long as
// the estimates prove that the budget suffices, and otherwise count like kube-apiserver (budget.go).
//
// A Rules value is safe for concurrent use; Check is a pure function. Schema nodes are read only.
//
// Rules: "Validation rules" in the Kubernetes documentation, KEP-2876 (CEL validation), KEP-4008 (ratcheting,
// optionalOldSelf); test/oracle/cel compares with k8s.io/apiextensions-apiserver.
package cel
