// Package bowsprit runs a Kubernetes-compatible API server for CustomResourceDefinitions inside a program.
//
// A Server is one process-local control plane: an embedded etcd (or a connection to an external one), the API on TLS,
// and the controllers that the API needs. Unmodified clients talk to it: kubectl, client-go, controller-runtime, Helm.
//
//	server, err := bowsprit.New(bowsprit.Config{Ephemeral: true})
//	if err != nil { ... }
//	go server.Run(ctx)
//	<-server.Ready() // in a select with Run's result, which says why a server could not start
//	client, err := kubernetes.NewForConfig(server.RESTConfig())
//
// In tests, package testserver does this in one line. The command bowsprit (cmd/bowsprit) is a thin layer over Config.
package bowsprit
