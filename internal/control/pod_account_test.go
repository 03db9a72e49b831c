package control_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A pod that is written right after its namespace gets the account that a controller makes there.
func TestPodsOfNewNamespaces(t *testing.T) {
	c := start(t)
	for i := range 10 {
		namespace := fmt.Sprintf("shop-%d", i)
		c.create(namespaces, object("v1", "Namespace", "", namespace))
		pod := c.create(pods, podOn("", namespace, "first"))
		account, _, _ := unstructured.NestedString(pod.Object, "spec", "serviceAccountName")
		volumes, _, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes")
		if account != "default" || len(volumes) != 1 {
			t.Errorf("%s: account %q and %d volumes", namespace, account, len(volumes))
		}
	}
}
