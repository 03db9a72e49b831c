// Package registration implements the rules of the kinds of admissionregistration.k8s.io: defaults and validation. CEL
// expressions that do not compile are refused at the write, with the compiler's message.
//
// Package kinds defines the kinds with it, and the plugins read stored objects with the same defaults. Functions are
// pure. Error texts, paths and their order are as in Kubernetes 1.36 (pkg/apis/admissionregistration);
// test/oracle/admit compares.
package registration

// ManifestSuffix ends the names of webhook configurations, policies and bindings in files, and of no others (KEP-5793).
const ManifestSuffix = ".static.k8s.io"
