// Package expr compiles and runs the CEL expressions of admission: match conditions, and all expressions in policies.
//
// The plugins with expressions use it (admit/policy, admit/hook), and so do the rules of their kinds, which refuse
// invalid expressions at the write. A Compiler compiles the expressions of one policy or webhook to Expressions;
// expressions that share variables must come from one Compiler. Run evaluates a list of them against an Input, which
// represents one write, within a budget of CEL cost units.
//
// An Expression is immutable and safe for concurrent use. As in Kubernetes, an Expression that does not compile carries
// its error and returns it when it is run. A Compiler and an Input belong to one goroutine.
//
// Environment, function libraries and cost model come from k8s.io/apiserver/pkg/cel. Building an environment takes
// milliseconds, so environments without variables are built once for the process and shared. Rules: "Validating
// Admission Policy" in the Kubernetes documentation, KEP-3488, KEP-3716 (match conditions), KEP-3962 (mutating
// policies); test/oracle/admit compares with k8s.io/apiserver/pkg/admission/plugin/cel.
package expr
