package pod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// claimLists are the lists about claims in the status of a pod. An update of the status without such a list keeps it,
// and an empty list removes it.
var claimLists = []string{"resourceClaimStatuses", "nodeAllocatableResourceClaimStatuses"}

// Decode decodes a pod. Empty lists about claims, which the Go type encodes like missing ones, stay until an update
// of the status is prepared.
func Decode(obj object.Object) (unknown []string, err error) {
	var empty []string
	status := object.Map(obj, "status")
	for _, name := range claimLists {
		if list, ok := status[name].([]any); ok && len(list) == 0 {
			empty = append(empty, name)
		}
	}
	if unknown, err = rule.DecodeAs[corev1.Pod](obj); err != nil {
		return unknown, err
	}
	for _, name := range empty {
		object.Child(obj, "status")[name] = []any{}
	}
	return unknown, nil
}

// KeepClaims keeps what the status of a pod has about claims if the reporting client, which may be older than the
// fields, does not send it.
func KeepClaims(status, was object.Object) {
	for _, name := range []string{"resourceClaimStatuses", "extendedResourceClaimStatus",
		"nodeAllocatableResourceClaimStatuses"} {
		if status[name] == nil {
			rule.Keep(status, was, name)
		}
	}
	for _, name := range claimLists {
		if list, ok := status[name].([]any); ok && len(list) == 0 {
			delete(status, name)
		}
	}
}
