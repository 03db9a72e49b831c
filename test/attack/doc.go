// Package attack keeps attacks on a server as tests: none may get in, none may take the server down, and the server
// must recover the resources of each.
//
// The scripts in testdata are requests of users without permission for them, by families: one file each. Package script
// (internal/testing) describes their syntax. The users mallory, alice, bob, carol and dave have tokens of their names,
// and only the permissions that a script grants. Attacks that need a connection of their own, or a large request, are
// in Go: frames of HTTP/2 and smuggling in HTTP/1 (protocol_test.go), bodies (body_test.go), certificates and
// signatures (proof_test.go), and long lists in every place (growth_linux_test.go, for `make attack`).
package attack
