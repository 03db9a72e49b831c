// Package registration knows the rules of the kinds of admissionregistration.k8s.io: their defaults, and what may be
// written into them. CEL expressions that do not compile are refused when they are written, with the compiler's words.
//
// It stands below package kinds, which makes the kinds out of it, and below the plugins, which read what is stored with
// the same defaults. Functions are pure. Error texts, paths and their order are those of Kubernetes 1.36
// (pkg/apis/admissionregistration); test/oracle/admit compares.
package registration
