// Package oracle compares Bowsprit with the Kubernetes libraries whose behaviour it promises.
//
// It is a module of its own, so that nothing of the Kubernetes server libraries can reach the binary. Each package
// below it feeds the same random or real input to both sides and compares what comes out.
package oracle
