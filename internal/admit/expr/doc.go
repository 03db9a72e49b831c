// Package expr compiles and runs the CEL expressions of admission: match conditions, and everything in policies.
//
// It stands below the plugins that have expressions (admit/policy, admit/hook) and below the rules of the kinds that
// hold them, which refuse at the write what does not compile. A Compiler turns the expressions of one policy or
// webhook into Expressions; those that share variables must come from one Compiler. Run evaluates a list of them
// against an Input, what one write looks like, within a budget of CEL cost units.
//
// An Expression is immutable and safe for concurrent use; one that does not compile carries its error and gives it
// when it is run, as in Kubernetes. A Compiler and an Input belong to one goroutine.
//
// Environment, function libraries and cost model are those of k8s.io/apiserver/pkg/cel. Building an environment takes
// milliseconds, so those without variables are built once for the process and shared. Rules: "Validating Admission
// Policy" in the Kubernetes documentation, KEP-3488, KEP-3716 (match conditions), KEP-3962 (mutating policies);
// test/oracle/admit compares with k8s.io/apiserver/pkg/admission/plugin/cel.
package expr
