package content

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
)

// TestMadeTrustBundle checks that an export leaves out the bundles that the server publishes, and no others.
func TestMadeTrustBundle(t *testing.T) {
	t.Parallel()
	var bundles connect.Resource
	bundles.Group, bundles.Resource = "certificates.k8s.io", "clustertrustbundles"
	for signer, want := range map[string]bool{
		"kubernetes.io/kube-apiserver-serving": true, "example.com/own": false, "": false,
	} {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"signerName": signer}}}
		if got := made(bundles, obj); got != want {
			t.Errorf("%q: made by the server: %v", signer, got)
		}
	}
}
