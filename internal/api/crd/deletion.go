package crd

import (
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Deletion is a stage of a definition's deletion, in the condition Terminating.
type Deletion struct {
	status          apiextensionsv1.ConditionStatus
	reason, message string
}

// The stages of a deletion, in order. The last two end it and remove the finalizer.
var (
	DeletionPending = Deletion{apiextensionsv1.ConditionTrue, "InstanceDeletionPending",
		"CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"}
	DeletionInProgress = Deletion{apiextensionsv1.ConditionTrue, "InstanceDeletionInProgress",
		"CustomResource deletion is in progress"}
	DeletionCompleted = Deletion{apiextensionsv1.ConditionFalse, "InstanceDeletionCompleted",
		"removed all instances"}
	DeletionNeverEstablished = Deletion{apiextensionsv1.ConditionFalse, "NeverEstablished",
		"resource was never established"}
)

// DeletionFailed returns the stage after some objects could not be deleted; the deletion is retried.
func DeletionFailed(err error) Deletion {
	return Deletion{apiextensionsv1.ConditionTrue, "InstanceDeletionFailed",
		fmt.Sprintf("could not issue all deletes: %v", err)}
}

// SetDeletion records a stage in a stored definition, decoded JSON, in place. A final stage removes the finalizer. It
// reports whether anything changed.
func SetDeletion(obj map[string]any, stage Deletion, now time.Time) (changed bool) {
	status, err := statusOf(obj)
	if err != nil {
		return false
	}
	was := status.DeepCopy()
	conditions{list: &status.Conditions, now: now}.set(apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Terminating, Status: stage.status, Reason: stage.reason, Message: stage.message,
	})
	if !slices.Equal(was.Conditions, status.Conditions) {
		setStatus(obj, status)
		changed = true
	}
	if stage.status == apiextensionsv1.ConditionFalse {
		changed = removeFinalizer(obj) || changed
	}
	return changed
}

func removeFinalizer(obj map[string]any) bool {
	metadata, _ := obj["metadata"].(map[string]any)
	finalizers, _ := metadata["finalizers"].([]any)
	left := slices.DeleteFunc(slices.Clone(finalizers),
		func(f any) bool { return f == apiextensionsv1.CustomResourceCleanupFinalizer })
	if len(left) == len(finalizers) {
		return false
	}
	if len(left) == 0 {
		delete(metadata, "finalizers")
	} else {
		metadata["finalizers"] = left
	}
	return true
}

// markDeleted marks a definition on its first deletion instead of deleting it.
func markDeleted(obj map[string]any, now time.Time) {
	metadata, _ := obj["metadata"].(map[string]any)
	if metadata == nil {
		return
	}
	metadata["deletionTimestamp"] = now.UTC().Format(time.RFC3339)
	finalizers, _ := metadata["finalizers"].([]any)
	if !slices.Contains(finalizers, any(apiextensionsv1.CustomResourceCleanupFinalizer)) {
		metadata["finalizers"] = append(slices.Clone(finalizers), apiextensionsv1.CustomResourceCleanupFinalizer)
	}
	SetDeletion(obj, DeletionPending, now)
}
