// Package oracle compares Bowsprit with Kubernetes' libraries where it promises the same behavior.
//
// It is a module of its own, so that the Kubernetes server libraries cannot reach the binary. Each package below it
// feeds the same random or real input to both sides and compares the results.
package oracle
