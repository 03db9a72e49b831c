// Package aspod runs a program on this machine as if it were the pod of a workload on a server.
//
// RunCommand reads the workload, gives the program the files, variables and arguments of one of its containers, keeps
// the files current and passes signals on. On Linux the program has its files at a pod's paths, in a mount namespace
// that only it and this command see; elsewhere they are below a directory. Everything is read from the server with the
// rights of the caller, and the token of the program is the ServiceAccount's.
//
// The types are not safe for concurrent use.
package aspod
