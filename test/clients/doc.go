// Package clients runs other people's clients against the server: controller-runtime's manager, client-go's informers,
// a typed client made by client-gen, Helm. Each test starts a server of its own as the author of an operator does,
// through envtest and the directory that "bowsprit envtest" fills.
//
// api holds the Go types of the CronTab of Kubernetes' CRD page and generated what Kubernetes' generators make of them
// (generate.sh).
package clients
