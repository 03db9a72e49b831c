// Package badinput sends the wrong requests of test/e2e/testdata/bad_input.yaml to a running
// k8s.io/apiextensions-apiserver and compares its answers with those in the list, which test/e2e compares with ours.
package badinput
