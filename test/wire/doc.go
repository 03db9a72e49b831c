// Package wire has request scripts that are run in this process against one server: what a client sees of each verb.
// Package script (internal/testing) says how they are written. `go test -run 'TestScripts/create' -v ./test/wire` shows
// what was answered.
package wire
