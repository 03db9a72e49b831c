package signing_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/testing/controltest"
)

const servingSigner = "kubernetes.io/kube-apiserver-serving"

var bundles = schema.GroupVersionResource{
	Group: "certificates.k8s.io", Version: "v1", Resource: "clustertrustbundles",
}

func bundle(name, signer string, certificates []byte) *unstructured.Unstructured {
	obj := controltest.Object("certificates.k8s.io/v1", "ClusterTrustBundle", "", name)
	obj.Object["spec"] = map[string]any{"trustBundle": string(certificates)}
	if signer != "" {
		obj.Object["spec"].(map[string]any)["signerName"] = signer
	}
	return obj
}

func trusted(b *unstructured.Unstructured) string {
	text, _, _ := unstructured.NestedString(b.Object, "spec", "trustBundle")
	return text
}

// TestPublisher checks that the signer of the server's certificate has one bundle, that it is restored when a client
// changes or deletes it, and that other signers keep their bundles.
func TestPublisher(t *testing.T) {
	c := controltest.Start(t)
	ca := c.Config.CAData
	hash := sha256.Sum256(ca)
	name := fmt.Sprintf("kubernetes.io:kube-apiserver-serving:%x", hash[:12])
	c.Until(bundles, "", name)
	b, err := c.In(bundles, "").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedString(b.Object, "spec", "signerName"); got != servingSigner {
		t.Errorf("the signer is %q", got)
	}
	if trusted(b) != string(ca) {
		t.Errorf("the bundle has %q, the server %q", trusted(b), ca)
	}
	for _, f := range b.GetManagedFields() {
		if f.Manager != "kube-controller-manager" {
			t.Errorf("the manager is %s", f.Manager)
		}
	}

	c.Create(bundles, bundle("example.com:own:one", "example.com/own", ca))
	c.Create(bundles, bundle("unsigned", "", ca))
	c.Create(bundles, bundle("kubernetes.io:kube-apiserver-serving:old", servingSigner, ca))
	want := []string{"example.com:own:one", name, "unsigned"}
	c.Until(bundles, "", strings.Join(want, " "))

	patch := fmt.Appendf(nil, `{"spec":{"trustBundle":%q}}`, string(ca)+"# a comment\n")
	if _, err := c.In(bundles, "").Patch(t.Context(), name, types.MergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.When(bundles, "", "the bundle again", func(objects map[string]*unstructured.Unstructured) bool {
		return objects[name] != nil && trusted(objects[name]) == string(ca)
	})
	c.Delete(bundles, bundle(name, "", nil), "")
	c.When(bundles, "", "another bundle", func(objects map[string]*unstructured.Unstructured) bool {
		return objects[name] != nil && objects[name].GetUID() != b.GetUID()
	})
}

// TestPublisherOff checks that --controllers disables the publisher, which would delete the client's bundle. Once the
// namespace is gone, the controllers have handled the bundle.
func TestPublisherOff(t *testing.T) {
	const name = "kubernetes.io:kube-apiserver-serving:own"
	c := controltest.Start(t, func(c *bowsprit.Config) {
		c.Controllers.Enabled = []string{"*", "-kube-apiserver-serving-clustertrustbundle-publisher-controller"}
	})
	c.Create(bundles, bundle(name, servingSigner, c.Config.CAData))
	shop := c.Create(controltest.Namespaces, controltest.Object("v1", "Namespace", "", "shop"))
	c.Delete(controltest.Namespaces, shop, "")
	c.When(controltest.Namespaces, "", "shop to go", func(all map[string]*unstructured.Unstructured) bool {
		return all["shop"] == nil
	})
	c.Until(bundles, "", name)
}
