// Package clients runs other projects' clients against the server: controller-runtime's manager, client-go's informers,
// a typed client made by client-gen, Helm. Each test starts a server of its own like the author of an operator, through
// envtest and the directory that "bowsprit envtest" fills.
//
// api holds the Go types of the CronTab of Kubernetes' CRD page and generated the output of Kubernetes' generators for
// them (generate.sh).
package clients
