// Package wire runs request scripts in this process against one server. They show the responses of each verb. Package
// script (internal/testing) describes their syntax. `go test -run 'TestScripts/create' -v ./test/wire` prints the
// responses.
package wire
