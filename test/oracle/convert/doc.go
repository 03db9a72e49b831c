// Package convert compares the conversion of custom resources by webhook with that of k8s.io/apiextensions-apiserver.
package convert
