package controllerruntime

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/bowsprit/bowsprit/testserver"
)

var shirtKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shirt"}

// TestManager creates a definition and runs a controller that creates a ConfigMap for each object.
func TestManager(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	config := testserver.Start(t).RESTConfig()
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{shirtDefinition()},
	}); err != nil {
		t.Fatal(err)
	}

	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	made := make(chan string, 1) // the one ConfigMap; see the select in Reconcile
	r := &reconciler{client: manager.GetClient(), made: made}
	if err := ctrl.NewControllerManagedBy(manager).For(newShirt()).Owns(&corev1.ConfigMap{}).Complete(r); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1) // the result of Start, read once
	go func() { ended <- manager.Start(running) }()

	shirt := newShirt()
	shirt.SetNamespace("default")
	shirt.SetName("blue")
	if err := manager.GetClient().Create(ctx, shirt); err != nil {
		t.Fatal(err)
	}
	select {
	case name := <-made:
		if name != "blue" {
			t.Errorf("the controller made a ConfigMap for %q, want blue", name)
		}
	case <-ctx.Done():
		t.Error("the controller has made no ConfigMap")
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the manager ended with %v", err)
	}
}

// reconciler creates a ConfigMap for each Shirt, with its name, and sends the name of the first one that it reads back.
type reconciler struct {
	client client.Client
	made   chan<- string
}

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	shirt := newShirt()
	if err := r.client.Get(ctx, req.NamespacedName, shirt); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var found corev1.ConfigMap
	if err := r.client.Get(ctx, req.NamespacedName, &found); err == nil {
		select {
		case r.made <- found.Name:
		default: // already sent
		}
		return ctrl.Result{}, nil
	} else if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	wanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
	if err := ctrl.SetControllerReference(shirt, wanted, r.client.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.client.Create(ctx, wanted)
}

func newShirt() *unstructured.Unstructured {
	shirt := &unstructured.Unstructured{}
	shirt.SetGroupVersionKind(shirtKind)
	return shirt
}

func shirtDefinition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "shirts.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: shirtKind.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "shirts", Singular: "shirt", Kind: shirtKind.Kind,
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: shirtKind.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
				},
			}},
		},
	}
}
