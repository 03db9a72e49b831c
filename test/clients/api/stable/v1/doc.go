// Package v1 is the Go form of the CronTab of Kubernetes' CRD page, as the author of an operator writes it.
//
// +k8s:deepcopy-gen=package
// +groupName=stable.example.com
package v1
