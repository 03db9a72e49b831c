// Package e2e drives the bowsprit binary from outside, as a user does: an unmodified kubectl, raw HTTP, kill -9.
//
// TestMain builds both binaries once. Stories are text scripts in testdata/*.txt; script_test.go describes their
// language. Requests that no client sends are in testdata/bad_input.yaml. "go test -update" rewrites the expected
// output: review that difference like code.
//
// E2E_UPJET=1 installs all of upjet's definitions instead of a sample; E2E_KILLS=20 kills the server more often.
package e2e
