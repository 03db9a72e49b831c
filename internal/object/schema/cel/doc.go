// Package cel checks and runs the CEL rules of structural schemas (x-kubernetes-validations) exactly as kube-apiserver
// does.
//
// It stands behind package schema on the path of a write, and behind package crd when a definition is written. Check
// says what is wrong with the rules of a definition: they must compile, they must not cost too much, and they may look
// at oldSelf only where old and new values can be matched. New makes the Rules of a schema, which evaluate them on
// objects.
//
// Expressions go the way of cel-go: parse, check types, estimate the cost, plan, evaluate. The environment (functions,
// macros, planner) is built once for the process; a rule's scope adds to it only the types of self and oldSelf, and
// these are derived from the schema when the type checker asks for a field (types.go). So the price of a rule is that
// of its own text, not of the schema around it. Values are views of the decoded object (value.go); nothing is copied.
//
// Rules compile nothing until an object needs it, and each place of the schema compiles on its own. They run without
// counting costs as long as the estimates prove that no budget is in danger, and count as kube-apiserver does otherwise
// (budget.go).
//
// A Rules value is safe for concurrent use; Check is a pure function. Schema nodes are read only.
//
// Rules: "Validation rules" in the Kubernetes documentation, KEP-2876 (CEL validation), KEP-4008 (ratcheting,
// optionalOldSelf); test/oracle/cel compares with k8s.io/apiextensions-apiserver.
package cel
