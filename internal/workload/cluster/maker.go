package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
)

// BurstMost is the largest number of pods that a controller creates or deletes in one reconcile.
const BurstMost = 500

// Maker creates and deletes pods for the object that controls them, and reports it in events about the object.
type Maker struct {
	*Cluster
	About corev1.ObjectReference
}

// Create creates a pod. It does nothing in a namespace that is being deleted.
func (m Maker) Create(ctx context.Context, pod *corev1.Pod) error {
	if len(pod.Labels) == 0 {
		return errors.New("unable to create pods, no labels")
	}
	name, err := Pods.CreateNamed(ctx, m.Cluster, pod)
	switch {
	case NamespaceEnds(err):
		return nil
	case err != nil:
		m.report(ctx, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
		return err
	}
	m.report(ctx, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", name)
	return nil
}

// Delete deletes a pod. A missing pod is a NotFound error.
func (m Maker) Delete(ctx context.Context, pod *corev1.Pod) error {
	err := Pods.Delete(ctx, m.Cluster, pod, metav1.DeleteOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return err
	case err != nil:
		m.report(ctx, corev1.EventTypeWarning, "FailedDelete", "Error deleting: %v", err)
		return fmt.Errorf("unable to delete pods: %w", err)
	}
	m.report(ctx, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %v", pod.Name)
	return nil
}

// DeleteAll deletes pods concurrently. Missing pods are not an error.
func (m Maker) DeleteAll(ctx context.Context, pods []*corev1.Pod) error {
	return AtOnce(len(pods), func(i int) error {
		return control.IgnoreNotFound(m.Delete(ctx, pods[i]))
	})
}

func (m Maker) report(ctx context.Context, kind, reason, format string, args ...any) {
	m.Report(ctx, Event{About: m.About, Type: kind, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// NamespaceEnds reports whether a create failed because the namespace is being deleted.
func NamespaceEnds(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
