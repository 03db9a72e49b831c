// Package codec compares decoding, negotiation and answers with k8s.io/apimachinery and k8s.io/apiserver.
package codec
