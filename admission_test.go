package bowsprit_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

func TestAdmissionPlugins(t *testing.T) {
	server := testserver.Start(t, func(c *bowsprit.Config) {
		c.Admission.Plugins = []bowsprit.AdmissionPlugin{{
			Name: "Stamp",
			Mutate: func(_ context.Context, r *bowsprit.AdmissionRequest) error {
				if r.Resource.Resource == "configmaps" && r.Object != nil {
					r.Object.SetLabels(map[string]string{"stamped-by": r.User.GetName()})
				}
				return nil
			},
			Validate: func(_ context.Context, r *bowsprit.AdmissionRequest) error {
				if r.Resource.Resource != "configmaps" || r.Namespace != "default" {
					return nil
				}
				if r.Operation == "DELETE" {
					return apierrors.NewConflict(r.Resource.GroupResource(), r.Name, errors.New("it is needed"))
				}
				if r.Object.GetUID() == "" {
					return errors.New("a validator sees the object as it will be stored")
				}
				return nil
			},
		}}
	})
	client, err := kubernetes.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	maps := client.CoreV1().ConfigMaps("default")
	made, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if made.Labels["stamped-by"] == "" {
		t.Errorf("labels %v", made.Labels)
	}
	if err := maps.Delete(t.Context(), "x", metav1.DeleteOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("deletion: %v", err)
	}
}

func TestAdmissionPluginsAreNamed(t *testing.T) {
	for _, plugins := range [][]bowsprit.AdmissionPlugin{{{}}, {{Name: "A"}, {Name: "A"}},
		{{Name: "NamespaceLifecycle"}}} {
		c := bowsprit.Config{Ephemeral: true, Admission: bowsprit.AdmissionConfig{Plugins: plugins}}
		if c.Validate() == nil {
			t.Errorf("%v is accepted", plugins)
		}
	}
	c := bowsprit.Config{
		Ephemeral: true, Admission: bowsprit.AdmissionConfig{Plugins: []bowsprit.AdmissionPlugin{{Name: "A"}},
			Disabled: []string{"A"}},
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}
