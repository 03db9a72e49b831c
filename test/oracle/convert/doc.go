// Package convert compares the conversion of custom resources by webhook with k8s.io/apiextensions-apiserver.
package convert
