// Package badinput sends the wrong requests of test/e2e/testdata/bad_input.yaml to a running
// k8s.io/apiextensions-apiserver and compares its responses with the list. test/e2e compares the list with our
// responses.
package badinput
