// Package controller is laid out, started and tested as kubebuilder scaffolds a project: its suite runs unchanged on
// the directory that "bowsprit envtest" fills.
package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stablev1 "github.com/bowsprit/bowsprit/test/clients/api/stable/v1"
)

// CronTabReconciler reconciles a CronTab object.
type CronTabReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// Reconcile copies the wanted replicas into the status.
func (r *CronTabReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cron stablev1.CronTab
	if err := r.Get(ctx, req.NamespacedName, &cron); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	cron.Status.Replicas = *cron.Spec.Replicas
	return ctrl.Result{}, r.Status().Update(ctx, &cron)
}
