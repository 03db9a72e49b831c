package clients

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	stablev1 "github.com/bowsprit/bowsprit/test/clients/api/stable/v1"
)

const (
	objects   = 2000
	finalizer = "stable.example.com/cleanup"
	byImage   = "spec.image"
)

// operator does the work of a typical operator: a finalizer, an owned object by server-side apply, a condition in the
// status.
type operator struct {
	client.Client
}

func (o *operator) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var cron stablev1.CronTab
	if err := o.Get(ctx, request.NamespacedName, &cron); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !cron.DeletionTimestamp.IsZero() {
		if !controllerutil.RemoveFinalizer(&cron, finalizer) {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, client.IgnoreNotFound(o.Update(ctx, &cron))
	}
	if controllerutil.AddFinalizer(&cron, finalizer) {
		return ctrl.Result{}, o.Update(ctx, &cron) // its event brings us back
	}
	job := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"image": cron.Spec.Image}}}
	job.SetAPIVersion("v1")
	job.SetKind("ConfigMap")
	job.SetNamespace(cron.Namespace)
	job.SetName(cron.Name)
	if err := controllerutil.SetControllerReference(&cron, job, o.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	if err := o.Apply(ctx, client.ApplyConfigurationFromUnstructured(job), client.FieldOwner("operator"),
		client.ForceOwnership); err != nil {
		return ctrl.Result{}, err
	}
	cron.Status.Replicas = ptr.Deref(cron.Spec.Replicas, 0)
	meta.SetStatusCondition(&cron.Status.Conditions,
		metav1.Condition{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "Applied", Message: "the job is there",
			ObservedGeneration: cron.Generation,
		})
	return ctrl.Result{}, o.Status().Update(ctx, &cron)
}

// manage runs the operator until the test ends.
func manage(ctx context.Context, t *testing.T, config *rest.Config) ctrl.Manager {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, clientgoscheme.AddToScheme(scheme))
	must(t, stablev1.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "operator.stable.example.com", LeaderElectionNamespace: "default",
		LeaderElectionReleaseOnCancel: true,
		Controller: ctrlconfig.Controller{
			SkipNameValidation: ptr.To(true), MaxConcurrentReconciles: 8,
		},
	})
	must(t, err)
	must(t, mgr.GetFieldIndexer().IndexField(ctx, &stablev1.CronTab{}, byImage, func(obj client.Object) []string {
		return []string{obj.(*stablev1.CronTab).Spec.Image}
	}))
	must(t,
		ctrl.NewControllerManagedBy(mgr).For(&stablev1.CronTab{}).Owns(&corev1.ConfigMap{}).Complete(&operator{
			mgr.GetClient(),
		}))
	stopped := make(chan error, 1)
	running, stop := context.WithCancel(ctx)
	go func() { stopped <- mgr.Start(running) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the cache did not fill")
	}
	return mgr
}

// TestManager: an operator brings a thousand objects to their goal, again after a change, and lets them go.
func TestManager(t *testing.T) {
	t.Parallel()
	ctx, config := bounded(t), start(t)
	mgr := manage(ctx, t, config)
	c := mgr.GetClient()
	for i := range objects {
		must(t,
			c.Create(ctx,
				&stablev1.CronTab{ObjectMeta: metav1.ObjectMeta{
					Namespace: "default", Name: fmt.Sprintf("cron-%04d", i),
				},
					Spec: stablev1.CronTabSpec{
						CronSpec: "* * * * *", Image: fmt.Sprintf("image-%d", i%10), Replicas: ptr.To(int32(2)),
					}}))
	}
	settled := func(image string, replicas int32) (bool, error) {
		var all stablev1.CronTabList
		if err := c.List(ctx, &all, client.InNamespace("default")); err != nil || len(all.Items) != objects {
			return false, err
		}
		for i := range all.Items {
			cron := &all.Items[i]
			ready := meta.FindStatusCondition(cron.Status.Conditions, "Ready")
			if ready == nil || ready.ObservedGeneration != cron.Generation ||
				cron.Status.Replicas != *cron.Spec.Replicas || cron.Spec.Image == image &&
				*cron.Spec.Replicas != replicas {
				return false, nil
			}
		}
		return true, nil
	}
	until(ctx, t, "all are ready", func() (bool, error) { return settled("", 0) })

	var some stablev1.CronTabList
	must(t, c.List(ctx, &some, client.InNamespace("default"), client.MatchingFields{byImage: "image-3"}))
	if len(some.Items) != objects/10 {
		t.Fatalf("%d objects by the index, want %d", len(some.Items), objects/10)
	}
	for i := range some.Items {
		cron := &some.Items[i]
		switch i % 3 { // the ways to change an object
		case 0:
			patch := client.MergeFrom(cron.DeepCopy())
			cron.Spec.Replicas = ptr.To(int32(5))
			must(t, c.Patch(ctx, cron, patch))
		case 1:
			until(ctx, t, "update", func() (bool, error) {
				fresh := &stablev1.CronTab{}
				if err := mgr.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(cron), fresh); err != nil {
					return false, err
				}
				fresh.Spec.Replicas = ptr.To(int32(5))
				err := c.Update(ctx, fresh)
				if err != nil && !apierrors.IsConflict(err) {
					t.Fatal(err)
				}
				return err == nil, err
			})
		default:
			apply := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(5)}}}
			apply.SetGroupVersionKind(stablev1.SchemeGroupVersion.WithKind("CronTab"))
			apply.SetNamespace(cron.Namespace)
			apply.SetName(cron.Name)
			must(t,
				c.Apply(ctx, client.ApplyConfigurationFromUnstructured(apply), client.FieldOwner("scaler"),
					client.ForceOwnership))
		}
	}
	until(ctx, t, "the changed ones are ready again", func() (bool, error) { return settled("image-3", 5) })

	var jobs corev1.ConfigMapList
	owned := func() (n int, err error) {
		err = mgr.GetAPIReader().List(ctx, &jobs, client.InNamespace("default"))
		for _, job := range jobs.Items {
			if slices.ContainsFunc(job.OwnerReferences,
				func(r metav1.OwnerReference) bool { return r.Kind == "CronTab" }) {
				n++
			}
		}
		return n, err
	}
	if n, err := owned(); err != nil || n != objects {
		t.Fatalf("%d owned config maps, want %d: %v", n, objects, err)
	}
	// As with envtest's own binaries, no garbage collector runs: it belongs to another process of Kubernetes.
	must(t, c.DeleteAllOf(ctx, &stablev1.CronTab{}, client.InNamespace("default")))
	until(ctx, t, "finalizers go, then the objects", func() (bool, error) {
		var left stablev1.CronTabList
		err := mgr.GetAPIReader().List(ctx, &left)
		return err == nil && len(left.Items) == 0, err
	})
	lease := &unstructured.Unstructured{}
	lease.SetAPIVersion("coordination.k8s.io/v1")
	lease.SetKind("Lease")
	must(t, c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "operator.stable.example.com"}, lease))
}
