// Package openapi compares the OpenAPI documents of internal/api/openapi with the documents of
// k8s.io/apiextensions-apiserver, and makes the data file of internal/api/openapi from Kubernetes' generated models:
//
//	go test -run TestModels -update
package openapi
