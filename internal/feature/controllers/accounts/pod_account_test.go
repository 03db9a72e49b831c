package accounts_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
)

// TestPodsOfNewNamespaces checks that a pod written right after its namespace gets the account that a controller
// creates there.
func TestPodsOfNewNamespaces(t *testing.T) {
	c := controltest.Start(t)
	for i := range 10 {
		namespace := fmt.Sprintf("shop-%d", i)
		c.Create(controltest.Namespaces, controltest.Object("v1", "Namespace", "", namespace))
		pod := c.Create(controltest.Pods, controltest.PodOn("", namespace, "first"))
		account, _, _ := unstructured.NestedString(pod.Object, "spec", "serviceAccountName")
		volumes, _, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes")
		if account != "default" || len(volumes) != 1 {
			t.Errorf("%s: account %q and %d volumes", namespace, account, len(volumes))
		}
	}
}
