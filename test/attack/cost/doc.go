// Package cost measures attacks on a server process: the memory that each adds, the time until its response, the CPU
// time after its client has left, and the latency of another user meanwhile.
//
// The server is the built binary. bodies_test.go lists the bodies, expressions_test.go the expressions and
// inputs_test.go other input of libraries, by families.
// TestQuick sends a sample of them in seconds and checks memory and responses. TestAll sends all and checks every
// bound; `make attack` runs it. The field known holds the reason why an attack misses a bound: the table shows it, and
// the tests accept it.
package cost
