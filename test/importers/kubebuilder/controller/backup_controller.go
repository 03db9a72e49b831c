// Package controller is the operator of Backups: each Backup becomes done, and its spec must keep at least one copy.
package controller

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Backup is the kind of the operator.
var Backup = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Backup"}

// NewBackup returns an empty Backup.
func NewBackup() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(Backup)
	return o
}

// BackupReconciler reconciles Backups.
type BackupReconciler struct{ client.Client }

// Reconcile sets the status of a Backup.
func (r *BackupReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	backup := NewBackup()
	if err := r.Get(ctx, req.NamespacedName, backup); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if phase, _, _ := unstructured.NestedString(backup.Object, "status", "phase"); phase == "Done" {
		return ctrl.Result{}, nil
	}
	if err := unstructured.SetNestedField(backup.Object, "Done", "status", "phase"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Update(ctx, backup)
}

// SetupWithManager adds the controller and the webhook to a manager.
func (r *BackupReconciler) SetupWithManager(manager ctrl.Manager) error {
	manager.GetWebhookServer().Register("/validate-example-com-v1-backup", &admission.Webhook{
		Handler: admission.HandlerFunc(validate(admission.NewDecoder(manager.GetScheme()))),
	})
	return ctrl.NewControllerManagedBy(manager).For(NewBackup()).Complete(r)
}

func validate(decoder admission.Decoder) func(context.Context, admission.Request) admission.Response {
	return func(_ context.Context, req admission.Request) admission.Response {
		backup := NewBackup()
		if err := decoder.Decode(req, backup); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if keep, found, _ := unstructured.NestedInt64(backup.Object, "spec", "keep"); found && keep < 1 {
			return admission.Denied("keep at least one copy")
		}
		return admission.Allowed("")
	}
}
