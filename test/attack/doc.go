// Package attack keeps attacks on a server as tests: none may get in, none may take the server down, and what an attack
// cost comes back.
//
// The scripts in testdata are requests of users who are not allowed what they ask for, by families: one file each. They
// are written as package script (internal/testing) says; the users mallory, alice, bob, carol and dave have tokens of
// their names and no rights but those that a script gives them. What needs a connection of its own, or a request too
// large for a text, is in Go: frames of HTTP/2 and what is smuggled in HTTP/1 (protocol_test.go), bodies
// (body_test.go), certificates and signatures (proof_test.go).
package attack
